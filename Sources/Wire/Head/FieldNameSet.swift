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

/// Names of fields: each whole, or with a `*` at its end the beginning of several. Letter case does not count, and an
/// underscore is a hyphen, as CGI-like servers read it.
public struct FieldNameList: Hashable, Sendable {
  /// The names in lower case.
  public var names: [String]

  public init(_ names: [String] = []) { self.names = names }

  /// Whether the list has a name.
  public func contains(_ name: UnsafeRawBufferPointer) -> Bool {
    names.contains { Self.matches($0, name) }
  }

  /// Whether the list has a name. A name with a `*` is in it only if all names with that beginning are.
  public func contains(_ name: String) -> Bool {
    Array(name.utf8).withUnsafeBytes { contains($0) }
  }

  private static func matches(_ pattern: String, _ name: UnsafeRawBufferPointer) -> Bool {
    let pattern = pattern.utf8
    guard pattern.last == UInt8(ascii: "*") else {
      return pattern.count == name.count && pattern.elementsEqual(name, by: isSame)
    }
    let start = pattern.dropLast()
    return start.count <= name.count && start.elementsEqual(name.prefix(start.count), by: isSame)
  }

  private static func isSame(_ byte: UInt8, _ other: UInt8) -> Bool {
    byte == ASCII.lowercased(other) || byte == UInt8(ascii: "-") && other == UInt8(ascii: "_")
  }
}

/// The choice of the fields of a message that are left out, made once for many messages.
public struct FieldOmission: Sendable {
  private let dropped: FieldNameList
  private let kept: FieldNameList
  /// The names that a head recognises among those that are left out.
  public let known: FieldNameSet

  /// - Parameters:
  ///   - dropped: The names that are left out.
  ///   - kept: Those of them that stay nevertheless.
  public init(_ dropped: FieldNameList, except kept: FieldNameList = FieldNameList()) {
    self.dropped = dropped
    self.kept = kept
    known = FieldName.allCases.reduce(into: []) { set, name in
      let text = "\(name.lowercased)"
      if !text.isEmpty, dropped.contains(text), !kept.contains(text) { set.insert(FieldNameSet(name)) }
    }
  }

  /// Whether a field is left out.
  public func omits(_ name: UnsafeRawBufferPointer) -> Bool { dropped.contains(name) && !kept.contains(name) }
}

extension FieldNameList {
  /// The fields that state what is left of a client's rate. They belong to one exchange.
  public static let rateLimits = FieldNameList(["ratelimit*", "x-ratelimit*", "x-rate-limit*"])
}

/// The elements of a comma-separated list, without the white space around them. Empty elements are skipped.
///
/// Quoted strings are not recognised: the lists that a proxy reads contain tokens.
///
/// A stranger decides on the length of a list, so that only its first elements are read, empty ones included. Every
/// reader takes the safe side for the others (`isCut`).
public struct ListElements: Sequence, IteratorProtocol {
  /// The maximum number of elements that are read, empty ones included. Credentials of the longest scheme (OAuth 1.0)
  /// have a dozen.
  public static let maxElements = 64

  private let bytes: UnsafeRawBufferPointer
  private var at = 0
  /// The number of elements that were read, empty ones included.
  private(set) var visited = 0

  public init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// Whether `next` has left elements out, since the list has too many.
  public var isCut: Bool { visited == Self.maxElements && at < bytes.count }

  public mutating func next() -> UnsafeRawBufferPointer? {
    while at < bytes.count, visited < Self.maxElements {
      let end = ASCII.index(of: ASCII.comma, in: bytes, at..<bytes.count) ?? bytes.count
      let element = MessageHead.trimmed(bytes[at..<end])
      at = end + 1
      visited += 1
      if !element.isEmpty { return UnsafeRawBufferPointer(rebasing: element) }
    }
    return nil
  }
}
