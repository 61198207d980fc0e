import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import Synchronization

/// The places of connections, each a descriptor that the proxy's clients need. A newcomer takes that of the connection
/// without a request for longest, so that idle ones keep no operator out.
final class ConnectionRoom: Sendable {
  private struct Place {
    let channel: any Channel
    /// The order in which connections came to have no request that waits for a response; `nil` while one does.
    var restsSince: Int?
  }

  private struct Places {
    var taken: [ObjectIdentifier: Place] = [:]
    var next = 0

    mutating func rest() -> Int {
      next += 1
      return next
    }
  }

  private let count: Int
  private let places = Mutex(Places())

  init(_ count: Int) { self.count = count }

  func enter(_ channel: any Channel) -> Bool {
    let (hasEntered, left) = places.withLock { places -> (Bool, (any Channel)?) in
      var left: (any Channel)?
      if places.taken.count >= count {
        let resting = places.taken.filter { $0.value.restsSince != nil }
        guard let oldest = resting.min(by: { $0.value.restsSince ?? 0 < $1.value.restsSince ?? 0 }) else {
          return (false, nil)
        }
        places.taken[oldest.key] = nil
        left = oldest.value.channel
      }
      places.taken[ObjectIdentifier(channel)] = Place(channel: channel, restsSince: places.rest())
      return (true, left)
    }
    left?.close(promise: nil)
    return hasEntered
  }

  func note(_ channel: any Channel, isBusy: Bool) {
    places.withLock { places in
      guard let place = places.taken[ObjectIdentifier(channel)] else { return }
      guard isBusy == (place.restsSince != nil) else { return }
      let since = isBusy ? nil : places.rest()
      places.taken[ObjectIdentifier(channel)]?.restsSince = since
    }
  }

  func leave(_ channel: any Channel) {
    places.withLock { $0.taken[ObjectIdentifier(channel)] = nil }
  }
}

/// The progress of one connection's requests, which decides on the time that its client has for the next step.
struct RequestProgress {
  /// The time for a complete request, from the connection's start and from a request's head on.
  static let requestTime = TimeAmount.seconds(10)
  /// The time from a response until the next request's head.
  static let idleTime = TimeAmount.seconds(60)

  /// The client's deadline after an event.
  enum DeadlineAction: Equatable {
    case set(TimeAmount)
    /// The client waits for a response, which may take as long as it takes.
    case remove
  }

  private var isReading = false
  /// The complete requests without the end of a response; -1 after a response that came before its request's end.
  private var waiting = 0

  mutating func readHead() -> DeadlineAction {
    isReading = true
    return action
  }

  mutating func readEnd() -> DeadlineAction {
    isReading = false
    waiting += 1
    return action
  }

  mutating func wroteEnd() -> DeadlineAction {
    waiting -= 1
    return action
  }

  var isBusy: Bool { waiting > 0 }

  /// The complete requests that may wait. Each is memory that nobody counts: a read may hold thousands.
  static let maxWaiting = 8

  /// Whether the client has sent more ahead than may wait. Nothing of that is handled.
  private(set) var isFlooded = false

  /// Whether what arrives now is handled.
  mutating func accepts(head isHead: Bool) -> Bool {
    if isHead, waiting >= Self.maxWaiting { isFlooded = true }
    return !isFlooded
  }

  var isOver: Bool { isFlooded && !isBusy }

  private var action: DeadlineAction {
    if isBusy { return .remove }
    return .set(isReading ? Self.requestTime : Self.idleTime)
  }
}

/// Closes a connection beyond the room, and one whose client takes no step or no response in time. Loop-confined.
final class ConnectionGuard: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// The time for a part of a response that the system's buffers do not hold.
  private static let writeTime = TimeAmount.seconds(60)

  private let room: ConnectionRoom
  private var hasEntered = false
  private var progress = RequestProgress()
  private var deadline: Scheduled<Void>?
  private var writeDeadline: Scheduled<Void>?

  init(_ room: ConnectionRoom) { self.room = room }

  func channelActive(context: ChannelHandlerContext) {
    hasEntered = room.enter(context.channel)
    guard hasEntered else { return context.close(promise: nil) }
    carryOut(.set(RequestProgress.requestTime), context)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    writeDeadline?.cancel()
    if hasEntered { room.leave(context.channel) }
    hasEntered = false
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    var isHead = false
    if case .head = part { isHead = true }
    guard progress.accepts(head: isHead) else { return }
    switch part {
    case .head(var head):
      carryOut(progress.readHead(), context)
      // The layers above go by this one value of the field, whatever the version of HTTP.
      if !head.isKeepAlive { head.headers.replaceOrAdd(name: "Connection", value: "close") }
      return context.fireChannelRead(wrapInboundOut(.head(head)))
    case .body: break
    case .end: carryOut(progress.readEnd(), context)
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    carryOut(progress.wroteEnd(), context)
    guard progress.isOver else { return context.write(data, promise: promise) }
    let end = promise ?? context.eventLoop.makePromise()
    end.futureResult.assumeIsolated().whenComplete { [channel = context.channel] _ in
      channel.close(promise: nil)
    }
    context.write(data, promise: end)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    writeDeadline?.cancel()
    writeDeadline = context.channel.isWritable ? nil : close(context, in: Self.writeTime)
    context.fireChannelWritabilityChanged()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // The client of a request that waits may be gone.
    if case ChannelEvent.inputClosed? = event as? ChannelEvent { room.note(context.channel, isBusy: false) }
    context.fireUserInboundEventTriggered(event)
  }

  private func carryOut(_ action: RequestProgress.DeadlineAction, _ context: ChannelHandlerContext) {
    deadline?.cancel()
    room.note(context.channel, isBusy: progress.isBusy)
    switch action {
    case .set(let time): deadline = close(context, in: time)
    case .remove: deadline = nil
    }
  }

  private func close(_ context: ChannelHandlerContext, in time: TimeAmount) -> Scheduled<Void> {
    let channel = context.channel
    return context.eventLoop.assumeIsolated().scheduleTask(in: time) { channel.close(promise: nil) }
  }
}

/// Hummingbird's connections, except that one is closed if nobody takes it. A listener that is cancelled, since a
/// service has failed, drops what it has accepted, and NIO stops the process if it drops an open `NIOAsyncChannel`.
struct AcceptedConnections: ServerChildChannel {
  let http1: HTTP1Channel

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection> {
    http1.setup(channel: channel, logger: logger).map(Connection.init)
  }

  func handle(value connection: Connection, logger: Logger) async {
    await http1.handle(value: connection.take(), logger: logger)
  }

  final class Connection: ServerChildChannelValue {
    private let http1: HTTP1Channel.Value
    private let isTaken = Atomic(false)

    init(_ http1: HTTP1Channel.Value) { self.http1 = http1 }

    var channel: any Channel { http1.channel }

    func take() -> HTTP1Channel.Value {
      isTaken.store(true, ordering: .relaxed)
      return http1
    }

    deinit {
      guard !isTaken.load(ordering: .relaxed) else { return }
      Task { [http1] in try await http1.executeThenClose { _, _ in } }
    }
  }
}
