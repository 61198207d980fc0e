import Idempotency
import NIOCore
import Telemetry

/// A record as the admin listener shows it. It never contains the key, the caller or the response's bytes.
struct RecordDocument: Encodable {
  var id: String
  static let unreadable = "unreadable"

  /// One of absent, in_flight, unknown, released, completed, expired and unreadable.
  var state: String
  var attempt: Int?
  var firstSeen: String?
  /// The time since the first delivery, or since the loss if only that is known.
  var ageSeconds: Double?
  var leaseLeftSeconds: Double?
  var unknownForSeconds: Double?
  var status: Int?
  var recordedAt: String?
  var expiresAt: String?
  /// True if the recorded outcome is sealed, so that its size and location cannot be read without the client's key.
  var sealed: Bool?
  /// The names of the recorded response's fields, in lower case; `nil` if no response was recorded, or they are sealed.
  var fields: [String]?
  /// The size of the recorded response's body; `nil` if no response was recorded.
  var bodyBytes: Int?
  /// The size of the whole response in the store, where it is compressed or sealed.
  var storedBytes: Int?
  var location: String?
  var nextDelivery: String?
  /// True if the record's route is shadowed now, so that each delivery is forwarded.
  var shadowed: Bool?
  // The following four are known by the record itself, unless an earlier version has made it.
  var route: String?
  var keyDigest: String?
  var callerDigest: String?
  var node: String?
  var cause: String?
  /// True if an operator has stated the outcome of the latest attempt, so that it is none that the backend gave.
  var stated: Bool?
  /// The recipe of the payload's fingerprint, as `semel explain` shows it.
  var recipe: String?
  // The following is known only of requests that this process has seen lately.
  /// The number of requests that have ended.
  var deliveries: Int?
  /// The time of the latest one, and the status that it got.
  var lastSeen: String?
  var lastStatus: Int?
  /// The last payload that this process has refused for this key, if the record could explain it.
  var lastMismatch: Mismatch?
  /// The part of a change that could not be done, or the reason why the record cannot be read.
  var warning: String?

  struct Mismatch: Encodable {
    var at: String
    /// The members that differed: `/amount +/note -1`.
    var differs: String
  }

  /// - Parameter policy: The record's route; `nil` if it is not known.
  init(_ id: RecordID, _ standing: Standing, by policy: RoutePolicy? = nil) {
    self.id = id.text
    route = policy?.name
    nextDelivery = standing.nextDelivery(by: policy)
    if policy?.shadow == true { shadowed = true }
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
      add(record)
    case .expired(let attempt):
      state = "expired"
      self.attempt = attempt
    }
  }

  private mutating func add(_ record: CompletedRecord) {
    attempt = record.attempt
    status = record.outcome.status
    recordedAt = Timestamp.text(milliseconds: record.recordedAt.milliseconds)
    expiresAt = Timestamp.text(milliseconds: record.expiresAt.milliseconds)
    storedBytes = record.storedBytes
    switch record.outcome {
    case .whole(let response):
      bodyBytes = response.body.readableBytes
      fields = response.fieldNames
    case .statusOnly(_, let location): self.location = location
    case .encoded: sealed = true
    }
  }

  /// Creates the document of an unreadable record, whose key is refused until it is forgotten.
  init(unreadable id: RecordID) {
    self.init(id, .absent)
    state = Self.unreadable
    nextDelivery = "gets 503 store_unreadable until the record is forgotten"
  }

  init(_ record: RecordView, by policy: RoutePolicy? = nil) {
    self.init(record.id, record.standing, by: policy)
    firstSeen = Timestamp.text(milliseconds: record.firstSeen.milliseconds)
    ageSeconds = record.age.inSeconds
    cause = record.cause?.rawValue
    if record.isStated { stated = true }
    recipe = record.recipe
    guard let attribution = record.attribution else { return }
    route = attribution.route
    keyDigest = attribution.keyDigest
    callerDigest = attribution.callerDigest
    node = attribution.node
  }
}

struct RecordListDocument: Encodable {
  var records: [RecordDocument]
  /// The value of `cursor` for the next page; absent on the last page.
  var next: String?
}

extension Milliseconds {
  var inSeconds: Double { Double(count) / 1000 }
}

extension RecordedResponse {
  /// The names of its fields, each once, in lower case and in order.
  fileprivate var fieldNames: [String] {
    let lines = String(buffer: fields).split(separator: "\r\n")
    return Set(lines.map { $0.prefix { $0 != ":" }.lowercased() }).sorted()
  }
}
