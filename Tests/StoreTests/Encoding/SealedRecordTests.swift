import Idempotency
import Logging
import NIOCore
import Store
import TestSupport
import Testing

/// Sealed records in a store whose secrets change.
struct SealedRecordTests {
  private static let completions = [
    Samples.completion(),
    Samples.completion(.whole(Samples.response(body: String(repeating: "x", count: 300_000)))),
    Samples.completion(.statusOnly(status: 201, location: "/v1/orders/7")),
  ]

  /// A claim with a client's key, in the form of the samples.
  private static func request() -> ClaimRequest {
    let request = Samples.request()
    return ClaimRequest(
      id: request.id, owner: request.owner, fingerprint: request.fingerprint, lease: request.lease,
      takeOver: .afterSettle(0), unknownRetention: request.unknownRetention, remember: request.remember,
      key: Samples.key("k"))
  }

  /// Runs a test with stores of several secrets on the same data.
  private static func onEach(
    _ test: (_ open: (OutcomeCodec) async throws -> any RecordStore) async throws -> Void
  ) async throws {
    let server = try await SharedRedis.server
    let settings = RedisEndpointSettings.on(server)
    var nodes: [RedisNode] = []
    try await test { codec in
      nodes.append(RedisNode(settings, codec: codec))
      return nodes[nodes.count - 1].store
    }
    for node in nodes { node.close() }
    let directory = TemporaryDirectory()
    var embedded: EmbeddedStore?
    try await test { codec in
      await embedded?.close()
      let store = try await opened(directory.file("semel.db"), codec)
      embedded = store
      return store
    }
    await embedded?.close()
  }

  /// Opens a file that was closed just now. A process that another test starts may hold its lock for a moment.
  private static func opened(_ path: String, _ codec: OutcomeCodec) async throws -> EmbeddedStore {
    let giveUp = ContinuousClock.now + .seconds(20)
    while true {
      let result = Result { try EmbeddedStore(path: path, codec: codec, logger: Logger(label: "test")) }
      guard case .failure(let error as EmbeddedStoreError) = result, case .inUse = error,
        ContinuousClock.now < giveUp
      else { return try result.get() }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  @Test func `a record of a lost secret is an error, is not run again, and can be forgotten`() async throws {
    for completion in Self.completions {
      try await Self.onEach { open async throws in
        let request = Self.request()
        _ = try await open(OutcomeCodec(secrets: ["the older secret"]))
          .completed(request, with: completion)
        for secrets in [["the newer secret"], []] as [[Secret]] {
          let store = try await open(OutcomeCodec(secrets: secrets))
          for _ in 0..<2 {
            let error = await #expect(throws: StoreError.self) {
              try await store.claim(request.changed(owner: .random()))
            }
            guard case .unreadable = error else { throw Unexpected(what: "\(error as Any)") }
          }
          await #expect(throws: StoreError.self) { try await store.find(request.id) }
        }
        let rotated = try await open(OutcomeCodec(secrets: ["the newer secret", "the older secret"]))
        guard case .taken(.completed(let record)) = try await rotated.claim(request.changed(owner: .random()))
        else { throw Unexpected(what: "not replayed") }
        #expect(record.outcome == completion.outcome)
        let store = try await open(OutcomeCodec(secrets: ["the newer secret"]))
        #expect(try await store.forget(request.id, fence: 0))
        _ = try await store.granted(request.changed(owner: .random()))
      }
    }
  }

  @Test func `records from before encryption stay readable`() async throws {
    for completion in Self.completions {
      try await Self.onEach { open async throws in
        let request = Self.request()
        _ = try await open(.plain).completed(request, with: completion)
        let store = try await open(OutcomeCodec(secrets: ["the newer secret"]))
        #expect(try await store.find(request.id).completedRecord?.outcome == completion.outcome)
      }
    }
  }

  @Test func `an operator sees that an outcome is sealed`() async throws {
    try await Self.onEach { open async throws in
      let request = Self.request()
      let store = try await open(OutcomeCodec(secrets: ["the newer secret"]))
      _ = try await store.completed(request)
      let record = try #require(try await store.find(request.id).completedRecord)
      guard case .encoded(let outcome) = record.outcome else { throw Unexpected(what: "\(record.outcome)") }
      #expect(outcome.status == 201)
      #expect(
        try await store.find(request.id, opening: Samples.key("k")).completedRecord?.outcome
          == .whole(Samples.response()))
    }
  }
}
