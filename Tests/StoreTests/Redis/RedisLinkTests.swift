import Dispatch
import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
import TestSupport
import Testing
import Wire

@testable import Store

/// The connection to one Redis, whose address may change.
@Suite(.timeLimit(.minutes(1)))
struct RedisLinkTests {
  /// A user that has no commands. Confined to the link's loop.
  private final class Idle: RedisLinkUser {
    func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String? { nil }
    func linkReceived(_ reply: borrowing HiredisReply) {}
    func linkReadAll() {}
    func linkWrote() {}
    func linkIsDown(_ reason: String) {}
  }

  @Test func `a connection to an earlier address, whose name was slow to find, is not used`() async throws {
    let (former, present) = (try await RedisServer(), try await RedisServer())
    let (mayFindFormer, mayFindPresent) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let local = try SocketAddress(ipAddress: "127.0.0.1", port: 0)
    let lookups = HostLookups { name in
      (name == "former" ? mayFindFormer : mayFindPresent).wait()
      return [local]
    }
    let context = EventLoopContext(loop: MultiThreadedEventLoopGroup.singleton.next())
    let link = try await context.loop.submit {
      let link = RedisLink(
        context: context, settings: .on(former), purpose: .records,
        address: .tcp(host: "former", port: former.port), lookups: lookups, logger: Logger(label: "link"))
      link.user = Idle()
      link.start()
      link.move(to: .tcp(host: "present", port: present.port))
      return link
    }.get()
    let before = try former.acceptedCount()
    mayFindFormer.signal()
    // Each query is a connection, too.
    var queries = 0
    try await until("the former server is met") {
      queries += 1
      return try former.acceptedCount() > before + queries
    }
    try await until("its connection is left") { try former.connectionCount == 0 }
    #expect(try await context.loop.submit { link.isUp }.get() == false)
    mayFindPresent.signal()
    try await until("the present server is used") { try present.connectionCount == 1 }
    try await context.loop.submit { link.close() }.get()
  }
}

extension RedisServer {
  /// The connections that the server has ever accepted, those of this query included.
  fileprivate func acceptedCount() throws -> Int {
    let line = try command(["INFO", "stats"])?.split(whereSeparator: \.isNewline)
      .first { $0.hasPrefix("total_connections_received:") }
    return line.flatMap { Int($0.split(separator: ":")[1]) } ?? 0
  }
}
