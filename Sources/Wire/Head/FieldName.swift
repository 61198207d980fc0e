/// The field names that a proxy has to know, recognised once while a head is parsed.
///
/// All other names are `other` and are compared by their bytes if needed.
public enum FieldName: UInt8, Sendable, CaseIterable {
  case other
  case accept
  case acceptEncoding
  case accessControlAllowCredentials
  case accessControlAllowOrigin
  case accessControlRequestHeaders
  case age
  case altSvc
  case authorization
  case cacheControl
  case connection
  case contentEncoding
  case contentLength
  case contentType
  case cookie
  case date
  case expect
  case forwarded
  case host
  case httpMethodOverride
  case idempotencyAttempt
  case idempotencyExpires
  case idempotencyKey
  case idempotencyOutcome
  case idempotencyRecordedAt
  case idempotencyRequestID
  case idempotencyRetention
  case idempotencyStatus
  case idempotentReplayed
  case ifModifiedSince
  case ifNoneMatch
  case ifRange
  case keepAlive
  case location
  case prefer
  case proxyAuthenticate
  case proxyAuthorization
  case proxyConnection
  case range
  case retryAfter
  case serverTiming
  case setCookie
  case te
  case traceparent
  case trailer
  case transferEncoding
  case upgrade
  case userAgent
  case via
  case wwwAuthenticate
  case xForwardedFor
  case xForwardedHost
  case xForwardedPort
  case xForwardedProto
  case xHTTPMethod
  case xHTTPMethodOverride
  case xHTTPVerb
  case xMethod
  case xMethodOverride
  case xRealIP
  case xShouldRetry

  /// The name in lower case, the form for comparisons.
  public var lowercased: StaticString {
    switch self {
    case .other: ""
    case .accept: "accept"
    case .acceptEncoding: "accept-encoding"
    case .accessControlAllowCredentials: "access-control-allow-credentials"
    case .accessControlAllowOrigin: "access-control-allow-origin"
    case .accessControlRequestHeaders: "access-control-request-headers"
    case .age: "age"
    case .altSvc: "alt-svc"
    case .authorization: "authorization"
    case .cacheControl: "cache-control"
    case .connection: "connection"
    case .contentEncoding: "content-encoding"
    case .contentLength: "content-length"
    case .contentType: "content-type"
    case .cookie: "cookie"
    case .date: "date"
    case .expect: "expect"
    case .forwarded: "forwarded"
    case .host: "host"
    case .httpMethodOverride: "http-method-override"
    case .idempotencyAttempt: "idempotency-attempt"
    case .idempotencyExpires: "idempotency-expires"
    case .idempotencyKey: "idempotency-key"
    case .idempotencyOutcome: "idempotency-outcome"
    case .idempotencyRecordedAt: "idempotency-recorded-at"
    case .idempotencyRequestID: "idempotency-request-id"
    case .idempotencyRetention: "idempotency-retention"
    case .idempotencyStatus: "idempotency-status"
    case .idempotentReplayed: "idempotent-replayed"
    case .ifModifiedSince: "if-modified-since"
    case .ifNoneMatch: "if-none-match"
    case .ifRange: "if-range"
    case .keepAlive: "keep-alive"
    case .location: "location"
    case .prefer: "prefer"
    case .proxyAuthenticate: "proxy-authenticate"
    case .proxyAuthorization: "proxy-authorization"
    case .proxyConnection: "proxy-connection"
    case .range: "range"
    case .retryAfter: "retry-after"
    case .serverTiming: "server-timing"
    case .setCookie: "set-cookie"
    case .te: "te"
    case .traceparent: "traceparent"
    case .trailer: "trailer"
    case .transferEncoding: "transfer-encoding"
    case .upgrade: "upgrade"
    case .userAgent: "user-agent"
    case .via: "via"
    case .wwwAuthenticate: "www-authenticate"
    case .xForwardedFor: "x-forwarded-for"
    case .xForwardedHost: "x-forwarded-host"
    case .xForwardedPort: "x-forwarded-port"
    case .xForwardedProto: "x-forwarded-proto"
    case .xHTTPMethod: "x-http-method"
    case .xHTTPMethodOverride: "x-http-method-override"
    case .xHTTPVerb: "x-http-verb"
    case .xMethod: "x-method"
    case .xMethodOverride: "x-method-override"
    case .xRealIP: "x-real-ip"
    case .xShouldRetry: "x-should-retry"
    }
  }
}
