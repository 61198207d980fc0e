import Glibc
import Idempotency
import NIOCore
import NIOPosix
import Platform
import SimRedis
import TestSupport

/// Simulated servers on real sockets, for Semel's own connections.
///
/// `@unchecked`, because everything but the addresses is confined to one event loop. Links between the servers pass on
/// everything at once.
final class SimRedisHost: @unchecked Sendable {
  /// The servers of a topology, in the order of their addresses.
  struct Topology {
    var servers: [SimRedisServer]
    var links: [SimReplicationLink] = []
    var cluster: SimCluster?
  }

  /// The thread of all simulated servers: Semel's own loops go on while one of them is busy.
  private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  private let loop: any EventLoop
  private(set) var addresses: [SimAddress] = []
  private var topology = Topology(servers: [])
  /// The number of seconds by which the servers' clocks are ahead of the machine's.
  private var lead: Int64 = 0
  private var channels: [[Int: any Channel]]
  private var listeners: [any Channel] = []

  /// Binds so many ports of the loopback address, and builds servers for them.
  init(_ count: Int, build: @escaping @Sendable ([SimAddress]) -> Topology) async throws {
    loop = Self.group.next()
    channels = Array(repeating: [:], count: count)
    for index in 0..<count {
      let listener = try await ServerBootstrap(group: loop)
        .serverChannelOption(.backlog, value: 256)
        .childChannelInitializer { [unowned self] channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(SimConnectionHandler(self, index))
          }
        }.bind(host: "127.0.0.1", port: 0).get()
      guard let port = listener.localAddress?.port else { throw TestFailure("a socket without a port") }
      listeners.append(listener)
      addresses.append(SimAddress(port: port))
    }
    try await loop.submit { [self] in
      topology = build(addresses)
      settle()
    }.get()
  }

  deinit {
    for listener in listeners { listener.close(promise: nil) }
  }

  /// A server with the machine's wall clock.
  static func server(
    _ address: SimAddress, _ change: (inout SimRedisSettings) -> Void = { _ in }
  ) -> SimRedisServer {
    var settings = SimRedisSettings(address: address)
    change(&settings)
    // The world's time is that of the machine since its start.
    let offset = Self.wallMicroseconds - BootInstant.now.nanoseconds / 1000
    return SimRedisServer(
      settings, clock: SimRedisClock(microseconds: offset),
      random: SeededGenerator(seed: UInt64(address.port)))
  }

  private static var wallMicroseconds: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
  }

  /// Sets the servers' clocks to this number of seconds ahead of the machine's.
  func setClocks(ahead seconds: Int64) async throws {
    try await loop.submit { [self] in
      for server in topology.servers { server.clock.step(by: (seconds - lead) * 1_000_000) }
      lead = seconds
    }.get()
  }

  fileprivate func opened(_ index: Int, _ channel: any Channel) -> Int? {
    guard let connection = topology.servers[index].open() else { return nil }
    channels[index][connection] = channel
    return connection
  }

  fileprivate func received(_ bytes: [UInt8], _ index: Int, _ connection: Int) {
    topology.servers[index].receive(bytes, on: connection, at: BootInstant.now.nanoseconds)
    settle()
  }

  fileprivate func closed(_ index: Int, _ connection: Int) {
    topology.servers[index].close(connection)
    channels[index][connection] = nil
  }

  /// Passes on what the servers have for each other and for their connections.
  private func settle() {
    let now = BootInstant.now.nanoseconds
    for link in topology.links {
      link.connect(at: now)
      link.deliver()
      link.confirm(at: now)
    }
    topology.cluster?.passMessages()
    for (index, server) in topology.servers.enumerated() {
      for output in server.takeOutputs() { write(output, index) }
    }
  }

  private func write(_ output: SimRedisOutput, _ index: Int) {
    switch output {
    case .bytes(let connection, let bytes):
      channels[index][connection]?.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    case .close(let connection): channels[index].removeValue(forKey: connection)?.close(promise: nil)
    }
  }
}

/// One connection of the host.
private final class SimConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let host: SimRedisHost
  private let index: Int
  private var connection: Int?

  init(_ host: SimRedisHost, _ index: Int) {
    self.host = host
    self.index = index
  }

  func channelActive(context: ChannelHandlerContext) {
    connection = host.opened(index, context.channel)
    if connection == nil { context.close(promise: nil) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let connection else { return }
    host.received(Array(buffer: unwrapInboundIn(data)), index, connection)
  }

  func channelInactive(context: ChannelHandlerContext) {
    if let connection { host.closed(index, connection) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
