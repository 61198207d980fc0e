import Idempotency
import NIOCore
import Platform
import Testing

/// Values as the tests need them: random where they must differ, long where time must not matter.
enum Samples {
  static func digest() -> Digest256 {
    var generator = SystemRandomNumberGenerator()
    var digest = Digest256(repeatElement(0, count: 32))!
    for index in 0..<4 { digest.words[index] = generator.next() }
    return digest
  }

  /// A client's key of visible ASCII characters.
  static func key(_ text: String) -> IdempotencyKey {
    do { return try KeyPolicy().key(texts: [text]) } catch { preconditionFailure("Samples: \(error)") }
  }

  static func id() -> RecordID { RecordID(digest()) }

  static func fingerprint(_ recipe: Recipe = Recipe()) -> Fingerprint {
    Fingerprint(recipe: recipe, digest: digest())
  }

  static func request(
    _ id: RecordID = id(), owner: OwnerToken = .random(), fingerprint: Fingerprint = fingerprint(),
    lease: Milliseconds = .seconds(60), takeOver: ClaimRequest.TakeOver = .never,
    unknownRetention: Milliseconds = .seconds(600), remember: Milliseconds = .seconds(600),
    attribution: Attribution? = nil
  ) -> ClaimRequest {
    ClaimRequest(
      id: id, owner: owner, fingerprint: fingerprint, lease: lease, takeOver: takeOver,
      unknownRetention: unknownRetention, remember: remember, attribution: attribution)
  }

  /// The origin of an attempt, with digests that no other sample has.
  static func attribution(
    route: String = "orders", keyDigest: String? = nil, node: String = "node-1"
  ) -> Attribution {
    let short = { String(digest().hexText.prefix(8)) }
    return Attribution(route: route, keyDigest: keyDigest ?? short(), callerDigest: short(), node: node)
  }

  /// A later delivery of the same request.
  static func again(
    _ claim: Claim, owner: OwnerToken = .random(), takeOver: ClaimRequest.TakeOver = .never,
    unusedRelease: Release = .remembered, attribution: Attribution? = nil
  ) -> ClaimRequest {
    ClaimRequest(
      id: claim.id, owner: owner, fingerprint: claim.fingerprint, lease: .seconds(60), takeOver: takeOver,
      unknownRetention: claim.unknownRetention, remember: claim.remember, unusedRelease: unusedRelease,
      attribution: attribution)
  }

  /// A delivery under the same key with another payload.
  static func changed(_ claim: Claim) -> ClaimRequest {
    again(claim).changed(fingerprint: fingerprint(claim.fingerprint.recipe))
  }

  static func response(status: Int = 201, body: String = "{\"id\":7}") -> RecordedResponse {
    RecordedResponse(
      status: status, fields: ByteBuffer(string: "Content-Type: application/json\r\nX-A: b\r\n"),
      body: ByteBuffer(string: body))
  }

  static func completion(
    _ outcome: Outcome = .whole(response()), retention: Milliseconds = .seconds(600),
    remember: Milliseconds = .seconds(600)
  ) -> Completion {
    Completion(outcome: outcome, retention: retention, remember: remember)
  }
}

extension ClaimRequest {
  /// A copy with another lease.
  func changed(lease: Milliseconds) -> ClaimRequest {
    ClaimRequest(
      id: id, owner: owner, fingerprint: fingerprint, lease: lease, takeOver: takeOver,
      unknownRetention: unknownRetention, remember: remember, key: key, attribution: attribution)
  }
}

extension RecordStore {
  /// Claims, and fails the test where the claim is not granted.
  func granted(_ request: ClaimRequest) async throws -> Claim {
    let outcome = try await claim(request)
    guard case .granted(let claim) = outcome else {
      throw Unexpected(what: "\(outcome)")
    }
    return claim
  }

  /// A record that an owner has completed.
  func completed(
    _ request: ClaimRequest = Samples.request(), with completion: Completion = Samples.completion()
  ) async throws -> Claim {
    let claim = try await granted(request)
    #expect(try await complete(claim, with: completion).outcome == .done)
    return claim
  }

  /// A record in flight whose lease has run out.
  func lapsed(_ request: ClaimRequest = Samples.request()) async throws -> Claim {
    let claim = try await granted(request.changed(lease: 30))
    try await until(claim.id) { if case .unknown = $0 { true } else { false } }
    return claim
  }

  /// Looks until the record stands as wanted: how the tests wait for the store's own time to pass.
  @discardableResult
  func until(_ id: RecordID, _ wanted: (Standing) -> Bool) async throws -> Standing {
    let giveUp = BootInstant.now.nanoseconds + 50_000_000_000
    while true {
      let standing = try await find(id)
      if wanted(standing) { return standing }
      guard BootInstant.now.nanoseconds < giveUp else { throw Unexpected(what: "still \(standing)") }
      try await Task.sleep(nanoseconds: 3_000_000)
    }
  }
}

extension RecordStore {
  /// The records that a walk over all parts of the list finds unreadable.
  func unreadable() async throws -> Set<RecordID> {
    var found: Set<RecordID> = []
    var cursor: String?
    repeat {
      let part = try await list(after: cursor)
      found.formUnion(part.unreadable)
      cursor = part.next
    } while cursor != nil
    return found
  }
}

extension RecordStore {
  /// The records that a walk over all parts of the list finds open.
  func open() async throws -> [RecordID: RecordView] {
    var found: [RecordID: RecordView] = [:]
    var cursor: String?
    repeat {
      let part = try await list(after: cursor)
      for record in part.records { found[record.id] = record }
      cursor = part.next
    } while cursor != nil
    return found
  }

  /// The records that a search through the whole store finds.
  func found(_ filter: RecordFilter) async throws -> Set<RecordID> {
    var found: Set<RecordID> = []
    var cursor: String?
    repeat {
      let part = try await search(filter, after: cursor)
      found.formUnion(part.ids)
      cursor = part.next
    } while cursor != nil
    return found
  }
}

/// Something that the test could not go on from.
struct Unexpected: Error { let what: String }

extension Standing {
  /// The state by itself, where the numbers with it do not matter.
  enum Name { case absent, inFlight, unknown, released, completed, expired }

  var name: Name {
    switch self {
    case .absent: .absent
    case .inFlight: .inFlight
    case .unknown: .unknown
    case .released: .released
    case .completed: .completed
    case .expired: .expired
    }
  }

  var completedRecord: CompletedRecord? {
    if case .completed(let record) = self { record } else { nil }
  }
}

extension ClaimOutcome {
  /// The standing of a record that was not granted.
  var standing: Standing? {
    if case .taken(let standing) = self { standing } else { nil }
  }

  /// The state of a record that was not granted.
  var taken: Standing.Name? {
    if case .taken(let standing) = self { standing.name } else { nil }
  }
}

extension OwnerOutcome {
  /// The state of a record that is lost.
  var lost: Standing.Name? {
    if case .lost(let standing) = self { standing.name } else { nil }
  }
}
