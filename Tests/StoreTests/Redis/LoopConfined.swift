import Idempotency
import NIOCore
import Platform

@testable import Store

/// A Redis store as tests use it: each call runs on the store's own loop, from whatever thread it comes.
struct LoopConfined: RecordStore {
  let store: RedisStore
  let context: EventLoopContext

  func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    context.loop.execute { store.startClaim(request, onReply: onReply) }
  }

  func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await context.run { () async throws(StoreError) in try await store.renew(claim) }
  }

  func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    try await context.run { () async throws(StoreError) in try await store.complete(claim, with: completion) }
  }

  func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await context.run { () async throws(StoreError) in try await store.release(claim, release) }
  }

  func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    try await context.run { () async throws(StoreError) in try await store.markUnknown(claim, because: cause)
    }
  }

  func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    try await context.run { () async throws(StoreError) in try await store.find(id, reading: reading) }
  }

  func isDown(for id: RecordID) async -> Bool { await context.run { await store.isDown(for: id) } }

  func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    try await context.run { () async throws(StoreError) in try await store.list(after: cursor) }
  }

  func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    try await context.run { () async throws(StoreError) in try await store.inspect(id) }
  }

  func search(
    _ filter: RecordFilter, after cursor: String?
  ) async throws(StoreError) -> FoundRecords {
    try await context.run { () async throws(StoreError) in try await store.search(filter, after: cursor) }
  }

  var openIndex: (any OpenRecordIndex)? {
    store.openIndex.map { LoopConfinedIndex(index: $0, context: context) }
  }

  func isCursor(_ text: String) -> Bool { store.isCursor(text) }

  func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await context.run { () async throws(StoreError) in try await store.forget(id, fence: fence) }
  }

  func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    try await context.run { () async throws(StoreError) in
      try await store.resolve(id, as: resolution, amending: amending, attempt: attempt)
    }
  }

  func watch(_ id: RecordID) async throws(StoreError) -> LoopConfinedWatch {
    let watch = try await context.run { () async throws(StoreError) in try await store.watch(id) }
    return LoopConfinedWatch(watch: watch, context: context)
  }

  /// Returns if a Redis replies now.
  func ping() async throws(StoreError) {
    _ = try await context.run { () async throws(StoreError) in
      try await store.nodes.reply(to: ["PING"], .any)
    }
  }
}

/// An index whose calls run on its store's loop.
struct LoopConfinedIndex: OpenRecordIndex {
  let index: any OpenRecordIndex
  let context: EventLoopContext

  func isNeeded() async -> Bool { await context.run { await index.isNeeded() } }

  func isCursor(_ text: String) -> Bool { index.isCursor(text) }

  func open(after cursor: String?) async throws(StoreError) -> OpenRecords {
    try await context.run { () async throws(StoreError) in try await index.open(after: cursor) }
  }

  func count() async throws(StoreError) -> OpenCount {
    try await context.run { () async throws(StoreError) in try await index.count() }
  }

  func open(matching filter: RecordFilter) async throws(StoreError) -> [RecordID] {
    try await context.run { () async throws(StoreError) in try await index.open(matching: filter) }
  }

  func repair(after cursor: String?, isUrgent: Bool) async throws(StoreError) -> String? {
    try await context.run { () async throws(StoreError) in
      try await index.repair(after: cursor, isUrgent: isUrgent)
    }
  }
}

/// A watch whose waits run on its store's loop.
struct LoopConfinedWatch: RecordWatch {
  let watch: RedisWatch
  let context: EventLoopContext

  func changed(within span: Milliseconds) async {
    await context.run { await watch.changed(within: span) }
  }

  func wake() { watch.wake() }

  func cancel() { watch.cancel() }
}
