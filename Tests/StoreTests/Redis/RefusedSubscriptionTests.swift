import Idempotency
import Platform
import Store
import TestSupport
import Testing

/// A Redis that refuses a subscription which it has confirmed before.
@Suite(.timeLimit(.minutes(2)))
struct RefusedSubscriptionTests {
  @Test func `a record whose subscription was refused is subscribed to by its next watch`() async throws {
    let server = try await RedisServer(arguments: [
      "--user", "semel", "on", ">word", "~*", "&*", "+@all",
    ])
    var settings = RedisEndpointSettings.on(server)
    settings.login.user = "semel"
    settings.login.password = "word"
    try await RedisNode.run(settings) { node in
      let claim = try await node.store.granted(Samples.request())
      let first = try await node.store.watch(claim.id)
      try server.command(["ACL", "SETUSER", "semel", "resetchannels"])
      // Redis cuts the subscriber off by itself, or is made to.
      try server.command(["CLIENT", "KILL", "TYPE", "pubsub"])
      // By the refusal on the next connection.
      await expectWake(of: first)
      let error = await #expect(throws: StoreError.self) { try await node.store.watch(claim.id) }
      guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(reason.contains("widen its ACL"), "\(reason)")
      try server.command(["ACL", "SETUSER", "semel", "allchannels"])
      let next = try await node.store.watch(claim.id)
      // The wake-ups by the subscription that was refused, and by the one that was confirmed.
      await first.changed(within: 50)
      #expect(try await node.store.release(claim, .remembered) == .done)
      await expectWake(of: first)
      await expectWake(of: next)
      first.cancel()
      next.cancel()
    }
  }

  private func expectWake(
    of watch: LoopConfinedWatch, _ place: SourceLocation = #_sourceLocation
  ) async {
    let begun = BootInstant.now
    await watch.changed(within: .seconds(20))
    #expect(BootInstant.now - begun < .seconds(20), sourceLocation: place)
  }
}
