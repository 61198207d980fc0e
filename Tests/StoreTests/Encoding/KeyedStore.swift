import Idempotency

/// A store as the proxy uses it where responses are sealed: each command brings the client's key of its record.
struct KeyedStore<Base: RecordStore>: RecordStore {
  let base: Base

  func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    base.startClaim(
      ClaimRequest(
        id: request.id, owner: request.owner, fingerprint: request.fingerprint, lease: request.lease,
        takeOver: request.takeOver, unknownRetention: request.unknownRetention, remember: request.remember,
        key: Samples.key(request.id.text), attribution: request.attribution,
        reader: request.reader),
      onReply: onReply)
  }

  private func keyed(_ claim: Claim) -> Claim {
    Claim(
      id: claim.id, owner: claim.owner, fingerprint: claim.fingerprint, attempt: claim.attempt,
      firstSeen: claim.firstSeen, followsUnknown: claim.followsUnknown,
      onlyRejectedSoFar: claim.onlyRejectedSoFar, uncountedAttempts: claim.uncountedAttempts,
      lease: claim.lease, unknownRetention: claim.unknownRetention, remember: claim.remember,
      fence: claim.fence,
      requestedAt: claim.requestedAt, copiedUntil: claim.copiedUntil, key: Samples.key(claim.id.text),
      attribution: claim.attribution)
  }

  func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome { try await base.renew(keyed(claim)) }

  func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    try await base.complete(keyed(claim), with: completion)
  }

  func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await base.release(keyed(claim), release)
  }

  func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    try await base.markUnknown(keyed(claim), because: cause)
  }

  func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    guard case .response(let key, let reader) = reading else {
      return try await base.find(id, reading: reading)
    }
    return try await base.find(
      id, reading: .response(opening: key ?? Samples.key(id.text), for: reader))
  }

  func isDown(for id: RecordID) async -> Bool { await base.isDown(for: id) }

  func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    try await base.list(after: cursor)
  }

  func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    try await base.inspect(id)
  }

  func search(
    _ filter: RecordFilter, after cursor: String?
  ) async throws(StoreError) -> FoundRecords {
    try await base.search(filter, after: cursor)
  }

  var openIndex: (any OpenRecordIndex)? { base.openIndex }

  func isCursor(_ text: String) -> Bool { base.isCursor(text) }

  func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await base.forget(id, fence: fence)
  }

  func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    try await base.resolve(id, as: resolution, amending: amending, attempt: attempt)
  }

  func watch(_ id: RecordID) async throws(StoreError) -> Base.Watch { try await base.watch(id) }
}
