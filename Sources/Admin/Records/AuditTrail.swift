import Logging
import Platform
import Synchronization
import Telemetry

/// The latest audit entries of this process, in memory, for operators. The log has all of them.
final class AuditTrail: Sendable {
  static let capacity = 500
  /// The maximum length of a value, in characters: a reason may be as long as a request.
  static let maxValue = 500

  private let entries = Mutex<[AuditEntry]>([])

  /// Adds the entry of a change that has just been made or refused, in place of the oldest if there is no room.
  func add(_ details: Logger.Metadata) {
    let entry = AuditEntry(details)
    entries.withLock { entries in
      if entries.count == Self.capacity { entries.removeFirst() }
      entries.append(entry)
    }
  }

  var latest: [AuditEntry] { entries.withLock { $0.reversed() } }
}

struct AuditEntry: Sendable, Encodable {
  let time: String
  let action: String
  let record: String?
  let from: String
  let reason: String?
  let warning: String?
  /// The cause of a refusal; `nil` if the change was made or has failed.
  let refused: String?
  let failed: String?
  let details: [String: String]

  fileprivate init(_ metadata: Logger.Metadata) {
    var rest = metadata.mapValues { String("\($0)".prefix(AuditTrail.maxValue)) }
    time = Timestamp.now()
    action = rest.removeValue(forKey: "action") ?? ""
    record = rest.removeValue(forKey: "record")
    from = rest.removeValue(forKey: "from") ?? ""
    reason = rest.removeValue(forKey: "reason")
    warning = rest.removeValue(forKey: "warning")
    refused = rest.removeValue(forKey: "refused")
    failed = rest.removeValue(forKey: "failed")
    details = rest
  }
}
