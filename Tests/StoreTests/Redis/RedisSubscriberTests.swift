import Idempotency
import Platform
import Store
import Synchronization
import TestSupport
import Testing
import Wire

/// A task that waits for a record's end is woken, and a cache that holds the record is notified.
@Suite(.timeLimit(.minutes(1)))
struct RedisSubscriberTests {
  @Test func `a watcher is woken by another node, and by nothing else`() async throws {
    let settings = RedisEndpointSettings.on(try await SharedRedis.server)
    try await RedisNode.run(settings) { node in
      try await RedisNode.run(settings) { other in
        let claim = try await node.store.granted(Samples.request())
        let watch = try await other.store.watch(claim.id)
        let started = BootInstant.now.nanoseconds
        await watch.changed(within: 50)
        #expect(BootInstant.now.nanoseconds - started >= 50_000_000)
        #expect(try await node.store.renew(claim) == .done)
        async let woken: Void = watch.changed(within: .seconds(20))
        #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
        await woken
        #expect(BootInstant.now.nanoseconds - started < 20_000_000_000)
        watch.cancel()
      }
    }
  }

  @Test func `a record is subscribed to while somebody watches it`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let id = Samples.id()
      let channel = "\(node.settings.namespace):{\(id.text)}"
      let watches = [try await node.store.watch(id), try await node.store.watch(id)]
      #expect(try server.command(["PUBSUB", "NUMSUB", channel]) == "\(channel)\n:1")
      watches[0].cancel()
      // Its commands are run in their order: once this one is confirmed, that one was.
      try await node.store.watch(Samples.id()).cancel()
      #expect(try server.command(["PUBSUB", "NUMSUB", channel]) == "\(channel)\n:1")
      watches[1].cancel()
      let again = try await node.store.watch(id)
      #expect(try server.command(["PUBSUB", "NUMSUB", channel]) == "\(channel)\n:1")
      again.cancel()
      _ = try await node.store.watch(Samples.id())
      #expect(try server.command(["PUBSUB", "NUMSUB", channel]) == "\(channel)\n:0")
    }
  }

  @Test func `after a resubscription every watcher is woken, and receives messages`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      let watch = try await node.store.watch(claim.id)
      let started = BootInstant.now.nanoseconds
      try server.command(["CLIENT", "KILL", "TYPE", "pubsub"])
      // A wake-up is no promise: one may come before the connection that the next one tells of.
      for _ in 0..<3 where node.subscriber.counters.connections < 2 {
        await watch.changed(within: .seconds(20))
      }
      #expect(node.subscriber.counters.connections == 2)
      #expect(try await node.store.release(claim, .remembered) == .done)
      await watch.changed(within: .seconds(20))
      #expect(BootInstant.now.nanoseconds - started < 20_000_000_000)
      watch.cancel()
    }
  }

  @Test func `a subscription that a frozen Redis does not confirm is unavailable`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server, timeout: 4000)) { node in
      try await node.store.watch(Samples.id()).cancel()
      server.freeze()
      let error = await #expect(throws: StoreError.self) { try await node.store.watch(Samples.id()) }
      guard case .unavailable = error else { throw Unexpected(what: "\(error as Any)") }
      server.thaw()
    }
  }

  @Test func `every cache is notified of forgotten and resolved records, and of a gap`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      try await RedisNode.run(node.settings) { other in
        let events = Events()
        other.subscriber.observe { events.record($0) }
        #expect(await events.next() == .up)
        let claims = [try await node.store.completed(), try await node.store.lapsed()]
        #expect(try await node.store.forget(claims[0].id, fence: 0))
        #expect(await events.next() == .invalidated(claims[0].id))
        #expect(try await node.store.resolve(claims[1].id, as: .notApplied) == .done)
        #expect(await events.next() == .invalidated(claims[1].id))
        try server.command(["CLIENT", "KILL", "TYPE", "pubsub"])
        #expect(await events.next() == .down)
        #expect(await events.next() == .up)
        let late = Events()
        other.subscriber.observe { late.record($0) }
        #expect(await late.next() == .up)
      }
    }
  }

  @Test func `a silent connection is found by its missing pong`() async throws {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    var settings = RedisEndpointSettings.on(server)
    settings.address = .tcp(host: "127.0.0.1", port: relay.port)
    try await RedisNode.run(settings) { node in
      let events = Events()
      node.subscriber.observe { events.record($0) }
      #expect(await events.next() == .up)
      relay.set(.vanish)
      #expect(await events.next() == .down)
      relay.set(.pass)
      #expect(await events.next() == .up)
    }
    await relay.close()
  }

  @Test func `a reply to a ping shows that nothing from before the ping is missing`() async throws {
    let server = try await RedisServer()
    try await RedisNode.run(.on(server)) { node in
      let begun = BootInstant.now
      let heard = Watched<[BootInstant]>([])
      node.subscriber.observe { event in
        if case .heard(let moment) = event { heard.withValue { $0.append(moment) } }
      }
      let moments = try await heard.until("two pings are replied to", within: .seconds(30)) {
        $0.count >= 2 ? $0 : nil
      }
      #expect(moments[0] < moments[1] && moments[1] > begun && moments[1] < .now)
    }
  }

  @Test func `an owner records its outcome even without the rights on channels`() async throws {
    let server = try await RedisServer(arguments: [
      "--user", "mute", "on", ">word", "~*", "resetchannels", "+@all",
    ])
    var settings = RedisEndpointSettings.on(server)
    settings.login.user = "mute"
    settings.login.password = "word"
    try await RedisNode.run(settings) { node in
      let claim = try await node.store.granted(Samples.request())
      let error = await #expect(throws: StoreError.self) { try await node.store.watch(claim.id) }
      guard case .unavailable(let text) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(text.contains("widen its ACL"))
      #expect(try await node.store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(try await node.store.find(claim.id).name == .completed)
    }
  }

  @Test func `a subscription that was refused is asked for again`() async throws {
    let server = try await RedisServer(arguments: ["--user", "muted", "on", ">word", "~*", "&*", "+@all"])
    var settings = RedisEndpointSettings.on(server)
    settings.login.user = "muted"
    settings.login.password = "word"
    try await RedisNode.run(settings) { node in
      let events = Events()
      node.subscriber.observe { events.record($0) }
      #expect(await events.next() == .up)
      try server.command(["ACL", "SETUSER", "muted", "-subscribe"])
      try server.command(["CLIENT", "KILL", "TYPE", "pubsub"])
      #expect(await events.next() == .down)
      try await until("the subscription is refused") {
        try server.command(["ACL", "LOG"])?.contains("subscribe") == true
      }
      try server.command(["ACL", "SETUSER", "muted", "+subscribe"])
      #expect(await events.next() == .up)
    }
  }

  /// The events in their order, awaited one by one.
  private final class Events: Sendable {
    private let stream: AsyncStream<RedisSubscriber.Event>
    private let continuation: AsyncStream<RedisSubscriber.Event>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    /// Takes an event, but for the signs of life between the others.
    func record(_ event: RedisSubscriber.Event) {
      if case .heard = event { return }
      continuation.yield(event)
    }

    func next() async -> RedisSubscriber.Event? {
      for await event in stream { return event }
      return nil
    }
  }
}
