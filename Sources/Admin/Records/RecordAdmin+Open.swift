import HTTPTypes
import Idempotency

extension RecordAdmin {
  func check(cursor: String?) throws(AdminError) {
    guard let cursor, !store.isCursor(cursor), store.openIndex?.isCursor(cursor) != true else { return }
    throw AdminError.bad("cursor is not one that a part of this list has given: begin without it")
  }

  /// The next part of the open records, by the index or a walk. A walk misses nothing. The index in Redis lacks what
  /// ran for less than a second or two and, until a walk has found it, what a process held that ended in that time.
  func openPart(after cursor: String?) async throws(AdminError) -> OpenRecords {
    if cursor == nil {
      let part = try await fromIndex { index throws(StoreError) in try await index.open(after: nil) }
      if let part { return part }
    }
    return try await read { () throws(StoreError) in
      guard let cursor, let index = store.openIndex, index.isCursor(cursor) else {
        return try await store.list(after: cursor)
      }
      return try await index.open(after: cursor)
    }
  }

  /// Reads from the index; `nil` if it is not to be used, which may show as it is read: Redis forbids it, say, or there
  /// are too many open records of late.
  func fromIndex<Reply: Sendable>(
    _ body: @escaping @Sendable (any OpenRecordIndex) async throws(StoreError) -> Reply
  ) async throws(AdminError) -> Reply? {
    return try await read { () throws(StoreError) -> Reply? in
      guard let index = store.openIndex, await index.isNeeded() else { return nil }
      do throws(StoreError) {
        return try await body(index)
      } catch {
        guard await !index.isNeeded() else { throw error }
        return nil
      }
    }
  }

  func usesIndex() async -> Bool {
    let isNeeded = try? await read { () throws(StoreError) in await store.openIndex?.isNeeded() }
    return isNeeded == true
  }

  /// A page of the open records that are wanted. It ends where it is full, or has taken its time.
  func list(
    after cursor: String?, span: Duration = RecordAdmin.pageSpan,
    where isWanted: @Sendable (RecordDocument) -> Bool
  ) async throws(AdminError) -> RecordListDocument {
    try check(cursor: cursor)
    var document = RecordListDocument(records: [], next: cursor)
    let (trails, routes) = (RecordTrails(journal), await currentRoutes())
    let end = ContinuousClock.now + span
    repeat {
      let part = try await openPart(after: document.next)
      let records =
        part.records.map { Self.document($0.id, $0, trails[$0.id], among: routes) }
        + part.unreadable.map(RecordDocument.init(unreadable:))
      document.records += records.filter(isWanted)
      document.next = part.next
    } while document.next != nil && document.records.count < Self.pageLength && ContinuousClock.now < end
    return document
  }

  /// The numbers of open records, with those of shadowed routes.
  func openCount() async throws(AdminError) -> OpenCount {
    if let known = try await fromIndex({ index throws(StoreError) in try await index.count() }) {
      return known
    }
    var count = OpenCount()
    try await eachOpenPart { part in
      for record in part.records {
        if case .unknown = record.standing { count.unknown += 1 } else { count.inFlight += 1 }
      }
      count.unreadable += part.unreadable.count
    }
    return count
  }

  /// Counts the open and the unreadable records and finds the oldest one's age, by state, but for shadowed routes.
  ///
  /// - Parameter lapsed: The ages of lapses that no earlier count has found.
  func count(
    lapsed: Range<Milliseconds>, onProgress: @Sendable () async -> Void
  ) async throws(AdminError) -> RecordCount {
    let shadowed = Set(await currentRoutes().filter(\.shadow).map(\.name))
    var lapses = NewLapses(of: lapsed)
    var count = RecordCount()
    var calledAt = ContinuousClock.now
    try await eachOpenPart { part in
      for record in part.records {
        if let route = record.attribution?.route, shadowed.contains(route) { continue }
        count.add(record)
        if lapses.take(record) { onLapse(record) }
      }
      count.add(unreadable: part.unreadable.count)
      if ContinuousClock.now - calledAt > .seconds(10) {
        await onProgress()
        calledAt = .now
      }
    }
    return count
  }

  func eachOpenPart(_ body: (OpenRecords) async -> Void) async throws(AdminError) {
    var cursor: String?
    repeat {
      let part = try await openPart(after: cursor)
      await body(part)
      cursor = part.next
    } while cursor != nil && !Task.isCancelled
  }

  /// A step of the walk that repairs the index. Returns the next one's cursor; `nil` at the end, or without an index.
  func repairIndex(after cursor: String?, isUrgent: Bool) async throws(AdminError) -> String? {
    return try await read { () throws(StoreError) in
      try await store.openIndex?.repair(after: cursor, isUrgent: isUrgent)
    }
  }
}

/// The records whose owners' leases have lapsed since an earlier walk through the store.
private struct NewLapses {
  /// The maximum number that one walk reports, each of which is a line of the log.
  private static let max = 1000

  private let ages: Range<Milliseconds>
  private var left = Self.max

  init(of ages: Range<Milliseconds>) { self.ages = ages }

  /// Takes a record. Returns whether its lapse is a new one, and to be reported.
  mutating func take(_ record: RecordView) -> Bool {
    guard left > 0, record.cause == .leaseLapsed, case .unknown(let age, _) = record.standing,
      ages.contains(age)
    else { return false }
    left -= 1
    return true
  }
}
