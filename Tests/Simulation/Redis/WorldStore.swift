import Idempotency
import Store

/// The store of one loop of a node: rules on a dictionary, or Semel's own store on simulated servers of Redis.
enum WorldStore: RecordStore {
  case memory(SimStore)
  case redis(RedisStore)

  func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    switch self {
    case .memory(let store): store.startClaim(request, onReply: onReply)
    case .redis(let store): store.startClaim(request, onReply: onReply)
    }
  }

  func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    switch self {
    case .memory(let store): try await store.renew(claim)
    case .redis(let store): try await store.renew(claim)
    }
  }

  func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    switch self {
    case .memory(let store): try await store.complete(claim, with: completion)
    case .redis(let store): try await store.complete(claim, with: completion)
    }
  }

  func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    switch self {
    case .memory(let store): try await store.release(claim, release)
    case .redis(let store): try await store.release(claim, release)
    }
  }

  func markUnknown(_ claim: Claim, because cause: LossCause?) async throws(StoreError)
    -> OwnerOutcome
  {
    switch self {
    case .memory(let store): try await store.markUnknown(claim, because: cause)
    case .redis(let store): try await store.markUnknown(claim, because: cause)
    }
  }

  func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    switch self {
    case .memory(let store): try await store.find(id, reading: reading)
    case .redis(let store): try await store.find(id, reading: reading)
    }
  }

  func watch(_ id: RecordID) async throws(StoreError) -> WorldWatch {
    switch self {
    case .memory(let store): .memory(try await store.watch(id))
    case .redis(let store): .redis(try await store.watch(id))
    }
  }

  func isDown(for id: RecordID) async -> Bool {
    switch self {
    case .memory(let store): await store.isDown(for: id)
    case .redis(let store): await store.isDown(for: id)
    }
  }
}

// The operators' commands.
extension WorldStore {
  func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    switch self {
    case .memory(let store): try await store.forget(id, fence: fence)
    case .redis(let store): try await store.forget(id, fence: fence)
    }
  }

  func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    switch self {
    case .memory(let store):
      try await store.resolve(id, as: resolution, amending: amending, attempt: attempt)
    case .redis(let store):
      try await store.resolve(id, as: resolution, amending: amending, attempt: attempt)
    }
  }

  func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    switch self {
    case .memory(let store): try await store.inspect(id)
    case .redis(let store): try await store.inspect(id)
    }
  }

  func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    switch self {
    case .memory(let store): try await store.list(after: cursor)
    case .redis(let store): try await store.list(after: cursor)
    }
  }

  func search(_ filter: RecordFilter, after cursor: String?) async throws(StoreError)
    -> FoundRecords
  {
    switch self {
    case .memory(let store): try await store.search(filter, after: cursor)
    case .redis(let store): try await store.search(filter, after: cursor)
    }
  }

  var openIndex: (any OpenRecordIndex)? {
    switch self {
    case .memory(let store): store.openIndex
    case .redis(let store): store.openIndex
    }
  }

  func isCursor(_ text: String) -> Bool {
    switch self {
    case .memory(let store): store.isCursor(text)
    case .redis(let store): store.isCursor(text)
    }
  }

  /// Has every node drop a record from its cache.
  func announce(_ id: RecordID) async {
    if case .redis(let store) = self { try? await store.announce(id) }
  }
}

/// A subscription of a delivery in either store.
enum WorldWatch: RecordWatch {
  case memory(SimWatch)
  case redis(RedisWatch)

  func changed(within span: Milliseconds) async {
    switch self {
    case .memory(let watch): await watch.changed(within: span)
    case .redis(let watch): await watch.changed(within: span)
    }
  }

  func wake() {
    switch self {
    case .memory(let watch): watch.wake()
    case .redis(let watch): watch.wake()
    }
  }

  func cancel() {
    switch self {
    case .memory(let watch): watch.cancel()
    case .redis(let watch): watch.cancel()
    }
  }
}
