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

extension FieldName {
  /// Recognises a field name, regardless of its letter case.
  ///
  /// Length and first letter leave one candidate, which is then compared; nothing is hashed or allocated.
  public static func recognise(_ bytes: UnsafeRawBufferPointer) -> FieldName {
    guard let byte = bytes.first else { return .other }
    let candidate = candidate(bytes, first: byte | 0x20)
    guard candidate != .other, ASCII.equalsIgnoringCase(bytes, candidate.lowercased) else { return .other }
    return candidate
  }

  /// The only known name that the bytes can be, by their length and first letter.
  ///
  /// - Parameter first: The first letter in lower case.
  private static func candidate(_ bytes: UnsafeRawBufferPointer, first: UInt8) -> FieldName {
    switch (bytes.count, Unicode.Scalar(first)) {
    case (2, "t"): .te
    case (3, "a"): .age
    case (3, "v"): .via
    case (4, "d"): .date
    case (4, "h"): .host
    case (5, "r"): .range
    case (6, "a"): .accept
    case (6, "c"): .cookie
    case (6, "e"): .expect
    case (6, "p"): .prefer
    case (7, "a"): .altSvc
    case (7, "t"): .trailer
    case (7, "u"): .upgrade
    case (8, "i"): .ifRange
    case (8, "l"): .location
    case (8, "x"): .xMethod
    case (9, "f"): .forwarded
    case (9, "x"): .xRealIP
    case (10, "c"): .connection
    case (10, "k"): .keepAlive
    case (10, "s"): .setCookie
    case (10, "u"): .userAgent
    case (11, "r"): .retryAfter
    case (11, "t"): .traceparent
    case (11, "x"): .xHTTPVerb
    case (12, "c"): .contentType
    case (13, "a"): .authorization
    case (13, "c"): .cacheControl
    case (13, "i"): .ifNoneMatch
    case (13, "s"): .serverTiming
    case (13, "x"): .xHTTPMethod
    case (14, "c"): .contentLength
    case (14, "x"): .xShouldRetry
    case (15, "a"): .acceptEncoding
    case (15, "i"): .idempotencyKey
    case (15, "x"): .xForwardedFor
    case (16, "c"): .contentEncoding
    case (16, "p"): .proxyConnection
    case (16, "w"): .wwwAuthenticate
    case (16, "x"): bytes[12] | 0x20 == 0x70 ? .xForwardedPort : .xForwardedHost
    case (17, "i"): .ifModifiedSince
    case (17, "t"): .transferEncoding
    case (17, "x"): bytes[2] | 0x20 == 0x6D ? .xMethodOverride : .xForwardedProto
    case (18, "i"): .idempotencyStatus
    case (18, "p"): .proxyAuthenticate
    case (19, "i"): idempotencyCandidate(bytes[13] | 0x20)
    case (19, "p"): .proxyAuthorization
    case (20, "h"): .httpMethodOverride
    case (21, "i"): .idempotencyRetention
    case (22, "i"): .idempotencyRequestID
    case (22, "x"): .xHTTPMethodOverride
    case (23, "i"): .idempotencyRecordedAt
    case (27, "a"): .accessControlAllowOrigin
    case (30, "a"): .accessControlRequestHeaders
    case (32, "a"): .accessControlAllowCredentials
    default: .other
    }
  }

  /// The only known name that the fourteenth letter, in lower case, leaves of four that share a length and a beginning.
  private static func idempotencyCandidate(_ letter: UInt8) -> FieldName {
    switch Unicode.Scalar(letter) {
    case "t": .idempotencyAttempt
    case "x": .idempotencyExpires
    case "u": .idempotencyOutcome
    case "p": .idempotentReplayed
    default: .other
    }
  }
}
