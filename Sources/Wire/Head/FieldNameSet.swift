/// A set of known field names, one bit each.
public struct FieldNameSet: OptionSet, Sendable {
  public let rawValue: UInt64

  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// Creates a set of names. `other` is never a member, because it is not a name.
  public init(_ names: FieldName...) {
    rawValue = names.reduce(0) { $0 | 1 << UInt64($1.rawValue) } & ~1
  }

  /// The set of one name; of none for `other`.
  public init(_ name: FieldName) {
    rawValue = 1 << UInt64(name.rawValue) & ~1
  }

  public func contains(_ name: FieldName) -> Bool {
    rawValue & (1 << UInt64(name.rawValue)) != 0
  }

  /// Fields that belong to one hop (RFC 9110, sections 7.6.1 and 11.7), whatever `Connection` lists.
  ///
  /// `Proxy-Authorization` is one of them: it was meant for a proxy, and a backend has no use for that secret.
  public static let hopByHop = FieldNameSet(
    .connection, .keepAlive, .proxyAuthenticate, .proxyAuthorization, .proxyConnection, .te, .trailer,
    .transferEncoding, .upgrade)

  /// Fields that name an authentication scheme, to a backend or by it.
  public static let authentication = FieldNameSet(.authorization, .wwwAuthenticate)

  /// Fields that frame a message, besides `Transfer-Encoding`. Each sender of the message writes its own.
  public static let length = FieldNameSet(.contentLength)

  /// Fields that state where a message ends.
  static let framing = FieldNameSet(.contentLength, .transferEncoding)

  /// Semel's own request fields, which are dropped from a client's request.
  public static let ownRequest = FieldNameSet(.idempotencyRequestID, .idempotencyAttempt)

  /// Fields with which a client makes a backend treat the request as one of another method.
  public static let methodOverrides = FieldNameSet(
    .httpMethodOverride, .xHTTPMethod, .xHTTPMethodOverride, .xHTTPVerb, .xMethod, .xMethodOverride)

  /// Semel's own response fields, and those with which a backend controls Semel. They are dropped from a backend's
  /// response.
  public static let ownResponse = FieldNameSet(
    .idempotencyExpires, .idempotencyOutcome, .idempotencyRecordedAt, .idempotencyRetention,
    .idempotencyStatus,
    .idempotentReplayed)

  /// Fields by which a response names the one origin whose pages may read it, and whether with credentials (CORS).
  public static let allowedOrigin = FieldNameSet(.accessControlAllowOrigin, .accessControlAllowCredentials)

  /// Fields by which a request asks for a part of a representation, or for none if it has the present one.
  public static let conditions = FieldNameSet(.ifModifiedSince, .ifNoneMatch, .ifRange, .range)

  /// Fields that describe one response at one moment. Recorded, they would be wrong in every replay.
  public static let momentary = FieldNameSet(
    .age, .altSvc, .date, .retryAfter, .serverTiming, .xShouldRetry)
}
