import Idempotency
import NIOCore
import Telemetry

/// A record as the operator's listener shows it: never its key, its caller or its answer's bytes.
struct RecordDocument: Encodable {
  var id: String
  static let unreadable = "unreadable"

  /// absent, in_flight, unknown, released, completed, expired, unreadable.
  var state: String
  var attempt: Int?
  var firstSeen: String?
  /// Since the first delivery, or since the loss where only that is known.
  var ageSeconds: Double?
  var leaseLeftSeconds: Double?
  var unknownForSeconds: Double?
  var status: Int?
  var recordedAt: String?
  var expiresAt: String?
  /// Of the kept answer; none where it was not kept.
  var bodyBytes: Int?
  var location: String?

  init(_ id: RecordID, _ standing: Standing) {
    self.id = id.text
    switch standing {
    case .absent: state = "absent"
    case .inFlight(let leaseLeft, let attempt):
      state = "in_flight"
      self.attempt = attempt
      leaseLeftSeconds = leaseLeft.inSeconds
    case .unknown(let age, let attempt):
      state = "unknown"
      self.attempt = attempt
      unknownForSeconds = age.inSeconds
    case .released(let attempt):
      state = "released"
      self.attempt = attempt
    case .completed(let record):
      state = "completed"
      attempt = record.attempt
      status = record.outcome.status
      recordedAt = Timestamp.text(milliseconds: record.recordedAt.milliseconds)
      expiresAt = Timestamp.text(milliseconds: record.expiresAt.milliseconds)
      switch record.outcome {
      case .kept(let response): bodyBytes = response.body.readableBytes
      case .notKept(_, let location): self.location = location
      }
    case .expired(let attempt):
      state = "expired"
      self.attempt = attempt
    }
  }

  /// A record in a format that this version does not read: its key is refused until it is forgotten.
  init(unreadable id: RecordID) {
    self.init(id, .absent)
    state = Self.unreadable
  }

  init(_ record: OpenRecord) {
    self.init(record.id, record.standing)
    firstSeen = Timestamp.text(milliseconds: record.firstSeen.milliseconds)
    ageSeconds = record.age.inSeconds
  }
}

/// A part of the list.
struct RecordListDocument: Encodable {
  var records: [RecordDocument]
  /// What `cursor` has to say for the next part; absent at the end.
  var next: String?
}

extension Milliseconds {
  var inSeconds: Double { Double(count) / 1000 }
}
