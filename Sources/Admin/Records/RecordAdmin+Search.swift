import HTTPTypes
import Idempotency
import Telemetry

/// The description of records by a key or a caller, without the other.
struct RecordSearch: Decodable {
  /// A key as its client writes it, or the texts of its parts.
  var key: KeyTexts?
  /// The digest of a key, as the log shows it.
  var keyDigest: String?
  /// The digest of a caller, as the log shows it.
  var callerDigest: String?
  /// The name of the only route to search.
  var route: String?
}

/// The result of a search.
struct RecordSearchDocument: Encodable {
  /// The digests by which the log shows the key.
  var keyDigests: [String]
  var records: [RecordDocument]
  /// Whether there are more records than are shown.
  var more: Bool
  /// The number of this process's events that were searched, and the time of the oldest.
  var searchedEvents: Int
  var searchedSince: String?
  var node: String
}

extension RecordAdmin {
  /// The maximum number of records that one search looks up in the store.
  private static let maxFound = 200

  /// Finds the records of a key, of all its callers, or those of a caller, among the requests that this process has seen
  /// lately.
  func search(_ search: RecordSearch) async throws(AdminError) -> RecordSearchDocument {
    let routes = await currentRoutes()
    let digests = try keyDigests(of: search, among: routes)
    let trails = RecordTrails(journal)
    let ids = trails.ids { trail in
      (digests.isEmpty || trail.keyDigest.map(digests.contains) ?? false)
        && (search.callerDigest == nil || search.callerDigest == trail.callerDigest)
        && (search.route == nil || search.route == trail.route)
    }
    var records: [RecordDocument] = []
    for id in ids.prefix(Self.maxFound) { records.append(try await show(id, trail: trails[id])) }
    return RecordSearchDocument(
      keyDigests: digests, records: records, more: ids.count > Self.maxFound, searchedEvents: trails.events,
      searchedSince: trails.since.map(Timestamp.text(milliseconds:)), node: node)
  }

  /// The digests of the key, which routes may read in different ways.
  private func keyDigests(
    of search: RecordSearch, among routes: [RoutePolicy]
  ) throws(AdminError) -> [String] {
    if let route = search.route, !routes.contains(where: { $0.name == route }) {
      throw AdminError(.notFound, "there is no route \(route)")
    }
    guard let key = search.key else {
      guard let digest = search.keyDigest else {
        guard search.callerDigest != nil else {
          throw AdminError(.badRequest, "give key, key_digest or caller_digest")
        }
        return []
      }
      return [digest]
    }
    var found: Set<String> = []
    var fault: String?
    for policy in routes where policy.isProtected && (search.route == nil || search.route == policy.name) {
      do throws(Problem) {
        found.insert(try policy.key.key(texts: key.texts).digestText(by: digests))
      } catch {
        fault = error.detail
      }
    }
    guard !found.isEmpty else {
      throw AdminError(.badRequest, fault ?? "no route keeps records under keys of clients")
    }
    return found.sorted()
  }
}
