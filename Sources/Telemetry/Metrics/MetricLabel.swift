import Idempotency

/// A label with a closed list of values, which bounds the size of the page.
public protocol MetricLabel: CaseIterable, Hashable, RawRepresentable<Int>, Sendable {
  /// The label's name on the page.
  static var key: String { get }
  /// The values, in the order of the cases.
  static var values: [String] { get }
}

extension MetricLabel {
  /// The label's value on the page.
  public var text: String { Self.values[rawValue] }
}

/// The outcome of a request.
public enum RequestOutcome: Int, MetricLabel {
  case executed, replayed, notStored, unknown, passed, ignored, unprotected, refused
  /// The connection was handed over to another protocol, such as WebSocket.
  case upgraded
  /// The client disconnected, or Semel had to cut off the response.
  case cut
  /// Semel itself responded: with its policy, or with the outcome of an earlier request.
  case reported
  /// The request was forwarded without effect of its record, since its route is shadowed.
  case shadow

  public static let key = "outcome"
  public static let values = [
    "executed", "replayed", "not_stored", "unknown", "passed", "ignored", "unprotected", "refused",
    "upgraded",
    "cut", "reported", "shadow",
  ]
}

/// The reason for which Semel refused a request: the code of its problem document.
public enum RefusalReason: Int, MetricLabel {
  case badRequest, keyMissing, keyInvalid, callerUnknown, payloadMismatch, inFlight, outcomeUnknown,
    responseNotKept, keyExpired, requestTooLarge, requestTimeout, storeUnavailable, storeUnreadable,
    upstreamUnreachable, overloaded, notImplemented, noRoute, headerTooLarge, keyNotSupported,
    quotaExceeded

  public static let key = "reason"
  public static let values = [
    "bad_request", "key_missing", "key_invalid", "caller_unknown", "payload_mismatch", "in_flight",
    "outcome_unknown", "response_not_kept", "key_expired", "request_too_large", "request_timeout",
    "store_unavailable", "store_unreadable", "upstream_unreachable", "overloaded", "not_implemented",
    "no_route", "header_too_large", "key_not_supported", "quota_exceeded",
  ]
}

/// The source of a replayed outcome.
public enum ReplaySource: Int, MetricLabel {
  case cache, store, wait

  public static let key = "source"
  public static let values = ["cache", "store", "wait"]
}

/// The way in which Semel prevented a second execution of an intent.
public enum Prevention: Int, MetricLabel {
  case replay, wait, refusal

  public static let key = "by"
  public static let values = ["replay", "wait", "refusal"]
}

/// The way in which the previous attempt ended.
public enum RetryCause: Int, MetricLabel {
  /// The previous attempt's outcome was lost, and this attempt took over the record.
  case unknown
  /// The previous attempt executed nothing, the backend requested a retry, or an operator stated that the operation did
  /// not take effect (`not_applied`).
  case released
  /// An operator removed the record with *forget*.
  case forgotten

  public static let key = "after"
  public static let values = ["unknown", "released", "forgotten"]
}

/// The backend's statement on a request whose response was lost.
public enum Reconciliation: Int, MetricLabel {
  case applied, absent
  /// It stated neither, or did not respond.
  case unknown

  public static let key = "verdict"
  public static let values = ["applied", "absent", "unknown"]
}

/// The end of one item of a batch.
public enum BatchItemEnd: Int, MetricLabel {
  case executed, replayed, refused

  public static let key = "outcome"
  public static let values = ["executed", "replayed", "refused"]
}

extension RetryStop: MetricLabel {
  public static let key = "by"
  public static let values = ["max", "time", "budget"]
}

/// The reason for which an outcome is recorded without the body of its response.
public enum UnkeptReason: Int, MetricLabel {
  /// Only the end of its connection delimits it.
  case noLength
  /// It is larger than `max_response_body`.
  case tooLarge
  /// There was no room in `limits.body_memory`.
  case noMemory
  /// It did not get to the store in time.
  case tooSlow

  public static let key = "why"
  public static let values = ["no_length", "too_large", "no_memory", "too_slow"]
}

/// The party whose failure it was.
public enum FailureCategory: Int, MetricLabel {
  case transport, auth, validation, backend, store, overload

  public static let key = "category"
  public static let values = ["transport", "auth", "validation", "backend", "store", "overload"]
}

/// A way in which a client may misuse its keys.
public enum Suspicion: Int, MetricLabel {
  /// One payload under many new keys of one caller within minutes: a client that makes a key for each retry.
  case samePayload
  /// A key that another caller has used just before.
  case sharedKey
  /// A key that is easily guessed, or given twice by accident.
  case weakKey
  /// Several payloads of one caller in a row that were refused, since their keys had another one.
  case mismatches

  public static let key = "kind"
  public static let values = ["same_payload", "shared_key", "weak_key", "mismatches"]
}

/// The parts of a request's duration.
public enum RequestPart: Int, MetricLabel {
  case claim, backend, record

  public static let key = "part"
  public static let values = ["claim", "backend", "record"]
}

/// A command of the record store.
public enum StoreCommand: Int, MetricLabel {
  case claim, renew, complete, release, markUnknown, find, forget, resolve, watch, list

  public static let key = "command"
  public static let values = [
    "claim", "renew", "complete", "release", "mark_unknown", "find", "forget", "resolve", "watch", "list",
  ]
}

/// The reason for which a store command got no reply.
public enum StoreFailure: Int, MetricLabel {
  case unavailable, fateUnknown, unreadable

  public static let key = "reason"
  public static let values = ["unavailable", "fate_unknown", "unreadable"]
}

/// The state of a record that is counted.
public enum OpenState: Int, MetricLabel {
  case inFlight, unknown, unreadable

  public static let key = "state"
  public static let values = ["in_flight", "unknown", "unreadable"]
}
