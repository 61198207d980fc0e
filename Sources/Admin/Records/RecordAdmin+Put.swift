import HTTPTypes
import Idempotency
import Logging

/// An operator's statement that an intent was executed without Semel, for a record that does not exist.
struct RecordStatement: OperatorDocument {
  enum CodingKeys: CodingKey, CaseIterable { case record, payload, resolution }

  /// The request as its client will deliver it.
  struct Payload: OperatorDocument {
    enum CodingKeys: String, CodingKey, CaseIterable {
      case query, headers, body
      case bodyBase64 = "body_base64"
    }

    var query: String?
    /// The fields that enter the fingerprint: `Content-Type`, and those that the route names.
    var headers: [String: String]?
    var body: String?
    var bodyBase64: String?
  }

  @Strict var record: RecordQuery
  @Strict var payload: Payload
  /// The outcome, which must be `applied`.
  @Strict var resolution: ResolutionDocument
}

extension RecordAdmin {
  /// The lease of the claim under which a statement is recorded. The two commands follow each other at once.
  private static let statementLease = Milliseconds.seconds(30)

  /// Records the outcome of an intent that was executed by hand. A record with an owner or an outcome stays as it is.
  func put(_ statement: RecordStatement, by peer: String) async throws(AdminError) -> RecordDocument {
    let routes = await currentRoutes()
    let identity = try statement.record.identity(among: routes, under: identityKey)
    try require(
      !identity.policy.shadow,
      "route \(identity.policy.name) is shadowed: its deliveries reach the backend, whatever is put; "
        + "take shadow: true out of the route first")
    try require(
      identity.policy.batch == nil,
      "\(identity.policy.name) takes batches: no item has the fingerprint of the payload given")
    let completion = try Self.completion(statement.resolution, of: identity)
    let request = try StatedRequest(statement, of: identity)
    try request.checkRoute(of: identity, among: routes)
    try request.checkKey(statement.record.key.texts, of: identity)
    try request.checkCaller(statement.record, of: identity)
    let claim = try await claim(request, identity, by: peer)
    let details: Logger.Metadata = [
      "as": "applied", "status": "\(completion.outcome.status)", "route": "\(identity.policy.name)",
      "attempt": .stringConvertible(claim.attempt),
    ]
    let reply = try await change("put", identity.id, peer, details) { () throws(StoreError) in
      try await store.complete(claim, with: completion)
    }
    guard reply.outcome == .done else {
      throw AdminError(.conflict, "the record was taken by another owner meanwhile: look at it again")
    }
    noteChange(of: identity.id, .ended(completion))
    let warning = await announce(identity.id)
    audit("put", identity.id, peer, details, warning)
    return try await show(identity.id, warning, by: identity.policy)
  }

  private static func completion(
    _ resolution: ResolutionDocument, of identity: RecordIdentity
  ) throws(AdminError) -> Completion {
    try require(
      resolution.attempt == nil, "what is put has no attempt yet: take attempt out of the resolution")
    guard case .applied(let completion) = try resolution.resolution(by: identity.policy) else {
      throw AdminError.bad("only what was applied can be put: what has no record runs anyway")
    }
    return completion
  }

  /// Claims the record for the operator, with the fingerprint of the client's payload.
  private func claim(
    _ stated: StatedRequest, _ identity: RecordIdentity, by peer: String
  ) async throws(AdminError) -> Claim {
    let policy = identity.policy
    var recipe = policy.recipe
    // Another recipe is that of a released record, which another configuration has made.
    for _ in 0..<2 {
      let request = ClaimRequest(
        id: identity.id, owner: .ofOperator(),
        fingerprint: stated.fingerprint(by: recipe, method: identity.method), lease: Self.statementLease,
        takeOver: .never, unknownRetention: policy.unknownRetention, remember: policy.remember,
        attribution: attribution(of: identity))
      switch try await onLoop({ () throws(StoreError) in try await store.claim(request) }) {
      case .granted(let claim): return claim
      case .otherRecipe(let other): recipe = other
      case .mismatch:
        throw refusal(identity.id, "its payload is another than the one given", by: peer)
      case .taken(let standing):
        throw refusal(identity.id, "it is \(RecordDocument(identity.id, standing).state)", by: peer)
      }
    }
    throw AdminError(.conflict, "the record changes: try again")
  }

  private func attribution(of identity: RecordIdentity) -> Attribution {
    let digests = digests.isShared ? digests : nil
    return Attribution(
      route: identity.policy.name, keyDigest: digests.map(identity.key.digestText(by:)),
      callerDigest: digests.map(identity.caller.digestText(by:)), node: node)
  }

  private func refusal(_ id: RecordID, _ reason: String, by peer: String) -> AdminError {
    audit("put", id, peer, ["refused": "\(reason)"])
    return AdminError(
      .conflict,
      "there is a record \(id.text) already, and \(reason): see `semel key show`, and `semel key resolve` for an "
        + "unknown outcome")
  }
}
