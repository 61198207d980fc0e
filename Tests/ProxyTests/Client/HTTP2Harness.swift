import Idempotency
import Logging
import NIOCore
import NIOEmbedded
import NIOHPACK
import Platform
import Wire

@testable import Proxy
@testable import Telemetry

/// The handlers of an HTTP/2 connection on an embedded channel, and its client as bytes. The tests run the deliveries
/// themselves.
final class HTTP2Harness {
  /// The number of flushes that reach the socket.
  final class FlushCount: ChannelOutboundHandler {
    typealias OutboundIn = IOData
    private(set) var count = 0

    /// The bytes that are read within the next flush, as from a socket whose write fails.
    var readInFlush: ByteBuffer?

    func flush(context: ChannelHandlerContext) {
      count += 1
      if let bytes = readInFlush {
        readInFlush = nil
        context.fireChannelRead(NIOAny(bytes))
      }
      context.flush()
    }
  }

  let channel = EmbeddedChannel()
  let downstream: Downstream
  let flushes = FlushCount()
  var deliveries: [Delivery] = []
  private var encoder = HPACKEncoder(allocator: ByteBufferAllocator(), useHuffmanEncoding: false)
  private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
  private var unparsed = ByteBuffer()
  private let registry: MetricRegistry
  /// The frames with which the server began.
  private(set) var preface: [HTTP2TestFrame] = []

  /// Opens a connection whose client has sent the preface and has got that of the server.
  ///
  /// - Parameters:
  ///   - routes: The routes of the requests, for tests that run them by a worker.
  ///   - acknowledges: Whether the client acknowledges the server's settings.
  init(
    limits: LimitSettings = LimitSettings(), routes: [RoutePolicy] = [], acknowledges: Bool = true
  ) throws {
    let metrics = Metrics(loops: 1)
    registry = metrics.registry
    downstream = Downstream(
      context: EventLoopContext(loop: channel.embeddedEventLoop),
      environment: ProxyEnvironment(counters: metrics.counters, logger: Logger(label: "test")),
      configuration: ConfigurationSnapshot(
        routes: RouteTable(routes) { metrics.number(ofRoute: $0) }, fallback: nil, limits: limits,
        accessLog: AccessLog(sink: LogSink(), format: .json, isEnabled: false),
        trustedProxies: TrustedProxies(), unmatchedKeys: .pass, passesUnderscores: false),
      metrics: metrics.loops[0])
    downstream.start = { [unowned self] in deliveries.append($0) }
    try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
    try channel.pipeline.syncOperations.addHandler(flushes)
    try ClientSession.start(on: channel, downstream: downstream, peer: ClientPeer(address: "192.0.2.1"))
    try channel.writeInbound(ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    try send(HTTP2TestFrame(.settings))
    if acknowledges { try send(HTTP2TestFrame(.settings, flags: 1)) }
    preface = try received()
  }

  var counters: Counters { downstream.environment.counters }

  /// The page of the counters that only grow.
  var page: String {
    var page = MetricPage()
    registry.add(to: &page)
    return page.text
  }

  /// Sends frames in one read.
  func send(_ frames: HTTP2TestFrame...) throws { try send(frames) }

  /// - Parameter turns: The turns of the loop in which they are handled; many more than they take by default.
  func send(_ frames: [HTTP2TestFrame], turns: Int64 = 100) throws {
    try channel.writeInbound(ByteBuffer(frames))
    channel.embeddedEventLoop.advanceTime(by: LoopTurn.pause * turns)
  }

  /// The HEADERS frame of a request. Its order among the frames that are sent is that of the calls.
  func request(
    _ method: String, on stream: UInt32, _ fields: HPACKHeaders = [:], isEnd: Bool = true
  ) throws -> HTTP2TestFrame {
    var all: HPACKHeaders = [":method": method, ":scheme": "http", ":authority": "a", ":path": "/"]
    all.add(contentsOf: fields.map { ($0.name, $0.value) })
    var block = ByteBuffer()
    try encoder.encode(headers: all, to: &block)
    return HTTP2TestFrame(.headers, flags: isEnd ? 0x5 : 0x4, stream, block)
  }

  /// The frames that the client has got since the last call.
  func received() throws -> [HTTP2TestFrame] {
    while case .byteBuffer(let bytes)? = try channel.readOutbound(as: IOData.self) {
      unparsed.writeImmutableBuffer(bytes)
    }
    var frames: [HTTP2TestFrame] = []
    while var frame = HTTP2TestFrame(from: &unparsed) {
      if frame.kind == HTTP2TestFrame.Kind.headers.rawValue {
        var block = frame.payload
        frame.fields = try decoder.decodeHeaders(from: &block)
      }
      frames.append(frame)
    }
    return frames
  }

  /// Has a worker run the deliveries that follow.
  func run(with store: ScriptedStore, _ backend: ScriptedBackend) {
    let worker = Worker(
      context: downstream.context, store: store, backend: backend, environment: downstream.environment,
      configuration: downstream.configuration, metrics: downstream.metrics)
    downstream.start = { [unowned self] in
      deliveries.append($0)
      RequestRunner(worker: worker, delivery: $0).start()
    }
  }

  /// The only connection.
  var session: ClientSession? { downstream.connections.values.first as? ClientSession }

  /// Ends the client's sending side.
  func endInput() {
    channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    channel.embeddedEventLoop.run()
  }

  /// Responds to a delivery with 200 and a body.
  func respond(to index: Int, _ body: ByteBuffer = ByteBuffer()) throws {
    guard deliveries.indices.contains(index) else { throw MissingDelivery() }
    let head = MessageHead(start: .status(200, reason: 0..<0))
    deliveries[index].respond(
      with: ClientResponse(head, label: nil, body: body, trailers: ByteBuffer(), to: .get))
    deliveries[index].runEnded()
    channel.embeddedEventLoop.run()
  }

  /// Sends as much of the body of stream 1 as the windows allow. They begin with these sizes, and grow by what the
  /// server announces.
  func upload(_ window: inout Int, _ connectionWindow: inout Int) throws {
    // Without back-pressure this would not end.
    for _ in 0..<100 {
      let count = min(window, connectionWindow, 16 << 10)
      guard count > 0 else { return }
      try send(.data(1, count))
      let frames = try received()
      window += frames.windowIncrement(of: 1) - count
      connectionWindow += frames.windowIncrement(of: 0) - count
    }
  }

  private struct MissingDelivery: Error {}

  /// Ends what a test leaves open.
  func close() {
    _ = try? channel.finish(acceptAlreadyClosed: true)
    for delivery in deliveries { delivery.runEnded() }
  }
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
struct HTTP2TestFrame {
  enum Kind: UInt8 {
    case data = 0
    case headers = 1
    case resetStream = 3
    case settings = 4
    case ping = 6
    case goAway = 7
    case windowUpdate = 8
    case continuation = 9
    case unknown = 0xf0
  }

  let kind: UInt8
  let flags: UInt8
  let stream: UInt32
  let payload: ByteBuffer
  /// The fields of a HEADERS frame that was received.
  var fields: HPACKHeaders = [:]

  init(_ kind: Kind, flags: UInt8 = 0, _ stream: UInt32 = 0, _ payload: ByteBuffer = ByteBuffer()) {
    self.kind = kind.rawValue
    self.flags = flags
    self.stream = stream
    self.payload = payload
  }

  /// Reads a frame; `nil` if it is not all there.
  init?(from bytes: inout ByteBuffer) {
    guard let word = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self),
      bytes.readableBytes >= 9 + Int(word >> 8), bytes.readInteger(as: UInt32.self) != nil,
      let flags = bytes.readInteger(as: UInt8.self), let stream = bytes.readInteger(as: UInt32.self),
      let payload = bytes.readSlice(length: Int(word >> 8))
    else { return nil }
    kind = UInt8(truncatingIfNeeded: word)
    self.flags = flags
    self.stream = stream
    self.payload = payload
  }

  func write(to bytes: inout ByteBuffer) {
    bytes.writeInteger(UInt32(payload.readableBytes) << 8 | UInt32(kind))
    bytes.writeInteger(flags)
    bytes.writeInteger(stream)
    bytes.writeImmutableBuffer(payload)
  }

  static func data(_ stream: UInt32, _ count: Int, isEnd: Bool = false) -> Self {
    Self(.data, flags: isEnd ? 1 : 0, stream, ByteBuffer(repeating: 0x78, count: count))
  }

  static func resetStream(_ stream: UInt32) -> Self {
    Self(.resetStream, stream, ByteBuffer(integer: UInt32(8)))
  }

  static func windowUpdate(_ stream: UInt32, _ count: UInt32) -> Self {
    Self(.windowUpdate, stream, ByteBuffer(integer: count))
  }

  static func ping(_ data: UInt64, isAcknowledgement: Bool = false) -> Self {
    Self(.ping, flags: isAcknowledgement ? 1 : 0, 0, ByteBuffer(integer: data))
  }
}

extension HTTP2TestFrame {
  func isOf(_ kind: Kind) -> Bool { self.kind == kind.rawValue }

  /// Whether the frame ends the stream's direction.
  var isEnd: Bool { (isOf(.data) || isOf(.headers)) && flags & 1 != 0 }

  /// The number at this offset of the payload.
  private func number(at offset: Int) -> UInt32? {
    payload.getInteger(at: payload.readerIndex + offset, as: UInt32.self)
  }

  /// The frame as a test expects it.
  var text: String {
    switch Kind(rawValue: kind) {
    case .data: "\(stream) data \(payload.readableBytes)\(isEnd ? " end" : "")"
    case .headers: "\(stream) status \(fields.first(name: ":status") ?? "")\(isEnd ? " end" : "")"
    case .resetStream: "\(stream) reset \(number(at: 0) ?? 0)"
    case .settings: "settings"
    case .ping: flags & 1 != 0 ? "pong" : "ping"
    case .goAway: "goaway \(number(at: 0) ?? 0) error \(number(at: 4) ?? 0)"
    case .windowUpdate: "\(stream) window"
    case .continuation, .unknown, nil: "\(stream) type \(kind)"
    }
  }
}

extension ByteBuffer {
  init(_ frames: [HTTP2TestFrame]) {
    self.init()
    for frame in frames { frame.write(to: &self) }
  }
}

extension [HTTP2TestFrame] {
  var texts: [String] { map(\.text) }

  /// The increment of a stream's window; of the connection's for 0.
  func windowIncrement(of stream: UInt32) -> Int {
    filter { $0.isOf(.windowUpdate) && $0.stream == stream }
      .reduce(0) { $0 + Int($1.payload.getInteger(at: $1.payload.readerIndex, as: UInt32.self) ?? 0) }
  }

  /// The number of bytes of a stream's body.
  func bodyBytes(of stream: UInt32) -> Int {
    filter { $0.isOf(.data) && $0.stream == stream }.reduce(0) { $0 + $1.payload.readableBytes }
  }
}
