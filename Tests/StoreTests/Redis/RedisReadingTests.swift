import Idempotency
import Platform
import Store
import TestSupport
import Testing

/// Records that change, or whose responses go, between a reply and the reading of the response that it names.
@Suite(.timeLimit(.minutes(1)))
struct RedisReadingTests {
  @Test(arguments: [false, true])
  func `an outcome that is amended while its response is read is reported as it is then`(isInquiry: Bool)
    async throws
  {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server), relayed: relay.port) { node in
      let sibling = node.sibling()
      try await node.reconnected()
      let (first, second) = (Self.large("1"), Self.large("2"))
      let claim = try await sibling.store.granted(Samples.request())
      #expect(try await sibling.store.markUnknown(claim) == .done)
      #expect(try await sibling.store.resolve(claim.id, as: .applied(first)) == .done)
      relay.set(.holdAfter(reply: "*3"))
      async let standing: Standing? =
        isInquiry ? node.store.find(claim.id) : node.store.claim(Samples.again(claim)).standing
      try await until("the reading of the response is on its way") { relay.isHolding }
      #expect(
        try await sibling.store.resolve(claim.id, as: .applied(second), amending: true, attempt: nil) == .done
      )
      try await Self.awaitSingleResponse(of: claim.id, at: server, node)
      relay.release()
      #expect(try await standing?.completedRecord?.outcome == second.outcome)
      sibling.close()
    }
    await relay.close()
  }

  @Test func `a record that is forgotten while its response is read is claimed anew`() async throws {
    let server = try await SharedRedis.server
    let relay = try await RedisRelay(to: server.port)
    try await RedisNode.run(.on(server), relayed: relay.port) { node in
      let sibling = node.sibling()
      try await node.reconnected()
      let claim = try await sibling.store.completed(with: Self.large("1"))
      relay.set(.holdAfter(reply: "*3"))
      async let granted = node.store.granted(Samples.again(claim))
      try await until("the reading of the response is on its way") { relay.isHolding }
      #expect(try await sibling.store.forget(claim.id, fence: .seconds(60)))
      try await until("the response is gone") {
        try server.command(["KEYS", "\(node.key(of: claim.id)):r:*"]) == ""
      }
      relay.release()
      #expect(try await granted.attempt == 2)
      sibling.close()
    }
    await relay.close()
  }

  @Test func `a response that Redis has evicted is reported as not kept`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.completed(with: Self.large("1"))
      try server.command(["DEL", "\(node.key(of: claim.id)):r:\(hexadecimal(claim.owner))"])
      let record = try await node.store.claim(Samples.again(claim)).standing?.completedRecord
      #expect(record?.outcome == .statusOnly(status: 201, location: nil))
    }
  }

  @Test func `a response whose reading could not begin is given to no other reader`() async throws {
    let server = try await RedisServer(arguments: ["--user", "semel", "on", ">secret", "~*", "&*", "+@all"])
    var settings = RedisEndpointSettings.on(server)
    let isReadable = Watched(true)
    settings.login.user = "semel"
    settings.login.readPassword = { () throws(RedisLogin.Fault) in
      guard isReadable.value else { throw RedisLogin.Fault(reason: "there is no password") }
      return Secret("secret")
    }
    try await RedisNode.run(settings) { node in
      try await node.reconnected()
      let claims = [
        try await node.store.completed(with: Self.large("1")),
        try await node.store.completed(with: Self.large("2")),
      ]
      isReadable.withValue { $0 = false }
      for claim in claims + claims {
        await #expect(throws: StoreError.self) { try await node.store.claim(Samples.again(claim)) }
      }
      isReadable.withValue { $0 = true }
      for (claim, text) in zip(claims, ["1", "2"]) {
        let record = try await node.store.claim(Samples.again(claim)).standing?.completedRecord
        #expect(record?.outcome == Self.large(text).outcome)
      }
    }
  }

  /// A completion whose response has a key of its own.
  private static func large(_ text: String) -> Completion {
    Samples.completion(.whole(Samples.response(body: String(repeating: text, count: 9000))))
  }

  /// Waits until the response of an amended outcome is deleted, which nobody else waits for.
  private static func awaitSingleResponse(
    of id: RecordID, at server: RedisServer, _ node: RedisNode
  ) async throws {
    try await until("the former response is gone") {
      try server.command(["KEYS", "\(node.key(of: id)):r:*"])?.split(whereSeparator: \.isNewline).count == 1
    }
  }
}
