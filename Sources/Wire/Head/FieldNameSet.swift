/// A set of known field names, one bit each.
public struct FieldNameSet: OptionSet, Sendable {
  public let rawValue: UInt64

  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// `other` is never a member: it is not a name.
  public init(_ names: FieldName...) {
    rawValue = names.reduce(0) { $0 | 1 << UInt64($1.rawValue) } & ~1
  }

  public func contains(_ name: FieldName) -> Bool {
    rawValue & (1 << UInt64(name.rawValue)) != 0
  }

  /// Fields that belong to one hop (RFC 9110, sections 7.6.1 and 11.7), whatever `Connection` says.
  ///
  /// `Proxy-Authorization` is among them: it was meant for a proxy, and a backend has no use for that secret.
  public static let hopByHop = FieldNameSet(
    .connection, .keepAlive, .proxyAuthenticate, .proxyAuthorization, .proxyConnection, .te, .trailer,
    .transferEncoding, .upgrade)

  /// What frames a message besides `Transfer-Encoding`; whoever sends the message on writes its own.
  public static let length = FieldNameSet(.contentLength)

  /// Semel's own request fields: a client's are dropped.
  public static let ownRequest = FieldNameSet(.idempotencyRequestID, .idempotencyAttempt)

  /// Fields by which a client asks a backend to act as if the request had another method.
  public static let methodOverrides = FieldNameSet(.xHTTPMethod, .xHTTPMethodOverride, .xMethodOverride)

  /// Semel's own response fields, and those with which a backend steers it: a backend's are dropped.
  public static let ownResponse = FieldNameSet(
    .idempotencyExpires, .idempotencyOutcome, .idempotencyRecordedAt, .idempotencyRetention,
    .idempotencyStatus,
    .idempotentReplayed)

  /// Fields that speak of one response at one moment: recorded, they would be wrong at every replay.
  public static let momentary = FieldNameSet(
    .age, .altSvc, .date, .retryAfter, .serverTiming, .xShouldRetry)
}
