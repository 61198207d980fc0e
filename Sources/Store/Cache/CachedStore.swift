import Idempotency

/// A record store with a local cache of completed outcomes.
public struct CachedStore<Base: RecordStore>: RecordStore {
  public let base: Base
  public let cache: LocalCache

  public init(_ base: Base, cache: LocalCache) {
    self.base = base
    self.cache = cache
  }

  public func knownOutcome(of id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome? {
    cache.outcome(id, fingerprint)
  }

  public func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    guard cache.isEnabled else { return base.startClaim(request, onReply: onReply) }
    let ticket = cache.ticket(for: request.id, countsMiss: true)
    base.startClaim(request) { [cache] reply in
      if case .success(.taken(.completed(let record))) = reply {
        cache.fill(request.id, request.fingerprint, record, with: ticket)
      }
      onReply(reply)
    }
  }

  public func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome { try await base.renew(claim) }

  public func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    let ticket = cache.ticket(for: claim.id)
    let reply = try await base.complete(claim, with: completion)
    if reply.outcome == .done, let record = reply.record {
      cache.fill(claim.id, claim.fingerprint, record, with: ticket)
    }
    return reply
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await base.release(claim, release)
  }

  public func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    try await base.markUnknown(claim, because: cause)
  }

  public func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    try await base.find(id, reading: reading)
  }

  public func isDown(for id: RecordID) async -> Bool { await base.isDown(for: id) }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    try await base.list(after: cursor)
  }

  public func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    try await base.inspect(id)
  }

  public func search(
    _ filter: RecordFilter, after cursor: String?
  ) async throws(StoreError) -> FoundRecords {
    try await base.search(filter, after: cursor)
  }

  public var openIndex: (any OpenRecordIndex)? { base.openIndex }

  public func isCursor(_ text: String) -> Bool { base.isCursor(text) }

  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await invalidating(id) { () throws(StoreError) in try await base.forget(id, fence: fence) }
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    try await invalidating(id) { () throws(StoreError) in
      try await base.resolve(id, as: resolution, amending: amending, attempt: attempt)
    }
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> Base.Watch { try await base.watch(id) }

  /// Removes the cache's entry after the store's reply, and also if the reply was lost, because the store may have
  /// executed the command.
  private func invalidating<T>(
    _ id: RecordID, _ body: () async throws(StoreError) -> T
  ) async throws(StoreError) -> T {
    defer { cache.invalidate(id) }
    return try await body()
  }
}
