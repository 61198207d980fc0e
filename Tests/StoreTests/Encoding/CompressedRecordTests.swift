import Idempotency
import NIOCore
import Store
import TestSupport
import Testing

/// Records of a store that compresses, beside nodes that do not.
struct CompressedRecordTests {
  private static let large = Samples.response(body: String(repeating: #"{"id":7},"#, count: 20_000))
  private static let compressing = OutcomeCodec(compression: .unsealed)

  /// Damages the compressed response of a record in Redis.
  private static func damage(_ server: RedisServer, _ key: String) throws {
    #expect(try server.command(["SETRANGE", key, "60", "damaged"])?.hasPrefix(":") == true)
  }

  @Test func `a node that compresses nothing replays what another has compressed`() async throws {
    let settings = RedisEndpointSettings.on(try await SharedRedis.server)
    let (node, other) = (RedisNode(settings, codec: Self.compressing), RedisNode(settings))
    defer {
      node.close()
      other.close()
    }
    for remember in [Milliseconds.seconds(600), .seconds(1200)] {
      let claim = try await node.store.completed(
        with: Samples.completion(.whole(Self.large), remember: remember))
      for store in [node.store, other.store] {
        guard case .taken(.completed(let record)) = try await store.claim(Samples.again(claim)) else {
          throw Unexpected(what: "no replay")
        }
        #expect(record.outcome == .whole(Self.large))
        let found = try #require(try await store.find(claim.id).completedRecord)
        #expect(found.outcome == .whole(Self.large))
        #expect(try #require(found.storedBytes) < 2000)
        #expect(
          try await store.complete(claim, with: Samples.completion(.whole(Self.large))).outcome == .done)
      }
    }
    let plain = try await other.store.completed(with: Samples.completion(.whole(Self.large)))
    #expect(try await node.store.find(plain.id).completedRecord?.outcome == .whole(Self.large))
    #expect(try await node.store.find(plain.id).completedRecord?.storedBytes == nil)
  }

  @Test func `a damaged response is an error, is not run again, and can be forgotten`() async throws {
    let server = try await SharedRedis.server
    let settings = RedisEndpointSettings.on(server)
    let node = RedisNode(settings, codec: Self.compressing)
    defer { node.close() }
    // Too large for the record, even compressed.
    let claim = try await node.store.completed(
      with: Samples.completion(
        .whole(Samples.response(body: (0..<20_000).map { "\($0 &* 7919 % 100_003) " }.joined()))))
    let pattern = "\(settings.namespace):{\(claim.id.text)}:r:*"
    let key = try #require(try server.command(["KEYS", pattern]))
    try Self.damage(server, key)
    for _ in 0..<2 {
      let error = await #expect(throws: StoreError.self) { try await node.store.claim(Samples.again(claim)) }
      guard case .unreadable = error else { throw Unexpected(what: "\(error as Any)") }
    }
    #expect(try await node.store.forget(claim.id, fence: 0))
    _ = try await node.store.granted(Samples.again(claim))
  }

  @Test func `a resolution by hand is compressed, and amended`() async throws {
    try await StoreUnderTest.compressedRedis.run { store, other async throws in
      try await Self.resolve(store, other)
    }
    try await StoreUnderTest.compressedEmbedded.run { store, other async throws in
      try await Self.resolve(store, other)
    }
  }

  private static func resolve(_ store: any RecordStore, _ other: any RecordStore) async throws {
    let claim = try await store.granted(Samples.request())
    #expect(try await store.markUnknown(claim) == .done)
    #expect(
      try await store.resolve(claim.id, as: .applied(Samples.completion(.whole(large)))) == .done)
    let found = try #require(try await other.find(claim.id).completedRecord)
    #expect(found.outcome == .whole(large))
    #expect(try #require(found.storedBytes) < 2000)
    // Its owner, which comes late, is shown the operator's word.
    let reply = try await other.complete(claim, with: Samples.completion())
    guard case .lost(.completed(let standing)) = reply.outcome else { throw Unexpected(what: "\(reply)") }
    #expect(standing.outcome == .whole(large))
    let amended = Samples.completion(.whole(Samples.response(body: "{}")))
    #expect(try await other.resolve(claim.id, as: .applied(amended), amending: true) == .done)
    #expect(try await store.find(claim.id).completedRecord?.outcome == amended.outcome)
  }
}
