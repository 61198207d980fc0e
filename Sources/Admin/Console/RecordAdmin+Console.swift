import HTTPTypes
import Idempotency
import Logging
import NIOCore

extension RecordAdmin {
  /// Walks all open records, and groups those of unknown outcome. Records of shadowed routes are left out.
  func openGroups() async throws(AdminError) -> OpenGroups {
    let routes = await currentRoutes()
    let upstreams = Dictionary(routes.map { ($0.name, $0) }) { first, _ in first }
    var groups = OpenGroups()
    try await eachOpenPart { part in
      for record in part.records {
        let policy = upstreams[record.attribution?.route ?? ""]
        if policy?.shadow == true { continue }
        groups.add(record, upstream: policy?.upstream.name ?? "")
      }
      groups.add(unreadable: part.unreadable.count)
    }
    groups.takenAt = .now
    return groups
  }

  /// The first records that a walk finds that have been unknown for a time, with their attempts.
  func unknownRecords(
    of route: String, olderThan age: Milliseconds
  ) async throws(AdminError) -> (found: [(id: RecordID, attempt: Int)], hasMore: Bool) {
    var found: [(id: RecordID, attempt: Int)] = []
    var cursor: String?
    repeat {
      let part = try await openPart(after: cursor)
      for record in part.records where record.attribution?.route == route {
        guard case .unknown(let span, let attempt) = record.standing, span >= age else { continue }
        guard found.count < BulkPlans.maxRecords else { return (found, true) }
        found.append((record.id, attempt))
      }
      cursor = part.next
    } while cursor != nil && !Task.isCancelled
    return (found, false)
  }

  /// The recorded response of a record, which is an audit entry; `nil` if the store has none that can be read.
  func recordedResponse(of id: RecordID, by peer: String) async throws(AdminError) -> RecordedResponse? {
    let view = try await read { () throws(StoreError) in try await store.inspect(id) }
    guard case .completed(let record) = view?.standing, case .whole(let response) = record.outcome else {
      return nil
    }
    audit("view_body", id, peer, ["bytes": "\(response.body.readableBytes)"])
    return response
  }

  /// The digests of a caller as clients name it, on each route that knows callers by one part.
  func callerDigests(of text: String) async -> [String] {
    var found: Set<String> = []
    for policy in await currentRoutes() {
      guard let caller = policy.caller, caller.parts.count == 1, let part = caller.parts.first else {
        continue
      }
      for part in part.alternatives {
        if let value = try? caller.caller(values: [part.text: text]) {
          found.insert(value.digestText(by: digests))
        }
      }
    }
    return found.sorted()
  }
}
