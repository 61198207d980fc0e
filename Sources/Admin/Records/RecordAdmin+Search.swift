import HTTPTypes
import Idempotency
import Telemetry

/// The description of records by a key or a caller, without the other.
struct RecordSearch: OperatorDocument {
  enum CodingKeys: String, CodingKey, CaseIterable {
    case key
    case keyDigest = "key_digest"
    case callerDigest = "caller_digest"
    case route, cursor, open
  }

  /// A key as its client writes it, or the texts of its parts.
  var key: KeyTexts?
  var keyDigest: String?
  var callerDigest: String?
  var route: String?
  /// The `next` of the part before; `nil` for the first part.
  var cursor: String?
  /// Whether only records that are in flight, of unknown outcome or unreadable are wanted.
  var open: Bool?
}

struct RecordSearchDocument: Encodable {
  /// The digests by which the log shows the key.
  var keyDigests: [String]
  /// Records of this part. One may be in two parts.
  var records: [RecordDocument]
  var next: String?
  /// The number of this process's events that were searched besides, and the time of the oldest.
  var searchedEvents: Int
  var searchedSince: String?
  var node: String
}

extension RecordAdmin {
  /// Finds the records of a key or a caller by a walk. The first part begins with those that this process has seen
  /// lately, and the open ones of the key by the index; if only open ones are wanted, that is all.
  func search(_ search: RecordSearch) async throws(AdminError) -> RecordSearchDocument {
    try check(cursor: search.cursor)
    let filter = RecordFilter(
      keyDigests: try keyDigests(of: search, among: await currentRoutes()),
      callerDigest: try search.callerDigest.map(digest), route: search.route)
    let trails = RecordTrails(journal)
    var document = RecordSearchDocument(
      keyDigests: filter.keyDigests, records: [], next: search.cursor, searchedEvents: trails.events,
      searchedSince: trails.since.map(Timestamp.text(milliseconds:)), node: node)
    var shown: Set<RecordID> = []
    if search.cursor == nil {
      for id in trails.ids(where: { filter.matches($0.attribution) }).prefix(Self.pageLength) {
        shown.insert(id)
        document.records.append(try await show(id, trails: trails))
      }
      let indexed = try await indexedRecords(filter)
      for id in indexed ?? [] where shown.insert(id).inserted {
        document.records.append(try await show(id, trails: trails))
      }
      if search.open == true, indexed != nil {
        document.records = document.records.filter(\.isOpen)
        return document
      }
    }
    let end = ContinuousClock.now + Self.pageSpan
    repeat {
      let after = document.next
      let part = try await read { () throws(StoreError) in try await store.search(filter, after: after) }
      for id in part.ids where shown.insert(id).inserted {
        document.records.append(try await show(id, trails: trails))
      }
      document.next = part.next
    } while document.next != nil && document.records.count < Self.pageLength && ContinuousClock.now < end
    if search.open == true { document.records = document.records.filter(\.isOpen) }
    return document
  }

  /// The open records of a filter's keys; `nil` without an index that is needed, or without a key.
  private func indexedRecords(_ filter: RecordFilter) async throws(AdminError) -> [RecordID]? {
    guard !filter.keyDigests.isEmpty else { return nil }
    return try await fromIndex { index throws(StoreError) in try await index.open(matching: filter) }
  }

  /// The digests of the key, which routes may read in different ways.
  private func keyDigests(
    of search: RecordSearch, among routes: [RoutePolicy]
  ) throws(AdminError) -> [String] {
    if let route = search.route { _ = try routes.route(named: route) }
    guard let key = search.key else {
      guard let keyDigest = search.keyDigest else {
        try require(search.callerDigest != nil, "give key, key_digest or caller_digest")
        return []
      }
      return [try digest(keyDigest)]
    }
    guard search.keyDigest == nil else { throw AdminError(.badRequest, "give key or key_digest, not both") }
    var found: Set<String> = []
    var fault: AdminError?
    for policy in routes where policy.isProtected && (search.route == nil || search.route == policy.name) {
      do throws(AdminError) {
        found.insert(try policy.statedKey(key.texts).digestText(by: digests))
      } catch {
        fault = fault ?? error
      }
    }
    guard !found.isEmpty else {
      throw fault ?? AdminError.bad("no route keeps records under keys of clients")
    }
    return found.sorted()
  }

  /// A digest as records hold it. Anything else would be found nowhere, and look like a key that never came.
  private func digest(_ text: String) throws(AdminError) -> String {
    guard text.utf8.count == 8, text.allSatisfy({ $0.isHexDigit && $0.isASCII }) else {
      throw AdminError.bad("a digest is the eight hexadecimal digits that the log shows")
    }
    return text.lowercased()
  }
}

extension RecordDocument {
  fileprivate var isOpen: Bool { ["in_flight", "unknown", Self.unreadable].contains(state) }
}
