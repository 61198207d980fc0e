/// All that a check knows about the endpoint, from its options.
public struct Setup: Sendable {
  public var endpoint: Endpoint
  public var method = "POST"
  /// The field lines of every request, besides those that the check makes.
  public var headers: [HeaderLine] = []
  public var otherCaller: HeaderLine?
  public var keyHeader = "Idempotency-Key"
  public var payloads: Payloads
  public var expected = ExpectedBehaviour.ietf
  public var oracle: OracleSettings?
  /// The time after which the endpoint forgets a key.
  public var ttl: Duration?
  /// The time in which the endpoint certainly begins with a request that it has received.
  public var headStart = Duration.milliseconds(300)
  /// The time limit of each response.
  public var timeout = Duration.seconds(30)

  public init(endpoint: Endpoint, payloads: Payloads) {
    self.endpoint = endpoint
    self.payloads = payloads
  }

  /// Whether the setup has this part.
  public func has(_ need: Need) -> Bool {
    switch need {
    case .oracle: oracle != nil
    case .otherPayload: payloads.other != nil
    case .otherCaller: otherCaller != nil
    case .credentials: headers.contains { Setup.isCredential($0.name) }
    case .slowRequest: payloads.slow != nil
    case .failingRequest: payloads.failing != nil
    case .jsonPayload: payloads.isObject
    case .multipartPayload: payloads.boundary != nil
    case .ttl: ttl != nil
    }
  }
}

/// The oracle of executions.
public enum OracleSettings: Equatable, Sendable {
  /// The number at a pointer in the document at a URL.
  case count(Endpoint, pointer: String)
  /// The ids of the elements of a list at a URL.
  case list(Endpoint, id: String)
  /// The id at a pointer in the responses themselves: it proves executions that were seen, and no absence.
  case responses(id: String)
}

/// The bodies of the requests.
public struct Payloads: Equatable, Sendable {
  public var first: [UInt8]
  public var mediaType: String
  public var other: [UInt8]?
  public var slow: [UInt8]?
  public var otherThanSlow: [UInt8]?
  public var failing: [UInt8]?

  /// - Parameter vary: The pointer to the member that makes another payload; `nil` takes the first one that can be
  ///   changed, and a body that is no JSON gets another last byte.
  public init(_ first: [UInt8], mediaType: String? = nil, vary: String? = nil, slow: [UInt8]? = nil) {
    self.first = first
    let json = JSONValue(first)
    self.mediaType = mediaType ?? (json == nil ? "application/octet-stream" : "application/json")
    self.slow = slow
    other = Payloads.changed(first, vary: vary)
    otherThanSlow = slow.flatMap { Payloads.changed($0, vary: vary) }
  }

  public var isObject: Bool {
    if case .object = JSONValue(first) { true } else { false }
  }

  /// The boundary of a multipart body; `nil` for any other one.
  public var boundary: String? {
    guard mediaType.lowercased().hasPrefix("multipart/"),
      let start = mediaType.lowercased().firstRange(of: "boundary=")?.upperBound
    else { return nil }
    let boundary = mediaType[start...].prefix { $0 != ";" && $0 != " " }.filter { $0 != "\"" }
    return boundary.isEmpty ? nil : boundary
  }

  /// The texts in the first payload that are long enough to be recognised elsewhere.
  public var confidential: [String] { (JSONValue(first)?.scalars ?? []).filter { $0.count >= 4 } }

  private static func changed(_ body: [UInt8], vary: String?) -> [UInt8]? {
    guard let json = JSONValue(body) else { return vary == nil && !body.isEmpty ? body + [0x32] : nil }
    for pointer in vary.map({ [$0] }) ?? json.memberPointers {
      if let changed = json.replacing(at: pointer, with: \.varied) { return Array(changed.text().utf8) }
    }
    return nil
  }
}

extension JSONValue {
  fileprivate var memberPointers: [String] {
    guard case .object(let members) = self else { return [""] }
    return members.map { "/" + $0.name.replacing("~", with: "~0").replacing("/", with: "~1") }
  }

  fileprivate var varied: JSONValue? {
    switch self {
    case .string(let text): .string(text.isEmpty ? "x" : text.dropLast() + String(text.last?.varied ?? "x"))
    case .number(let text):
      Int(text).map { .number("\($0 &+ 1)") } ?? Double(text).map { .number("\($0 + 1)") }
    case .bool(let value): .bool(!value)
    case .null, .array, .object: nil
    }
  }
}

extension Character {
  /// Another character of the same kind, so that a date or a UUID stays one.
  fileprivate var varied: Character {
    switch self {
    case "9", "z", "Z": self == "9" ? "8" : self == "z" ? "y" : "Y"
    case "0"..."8", "a"..."y", "A"..."Y":
      unicodeScalars.first.flatMap { Unicode.Scalar($0.value + 1) }.map(Character.init) ?? "x"
    default: "x"
    }
  }
}

extension Setup {
  /// The fields that the check makes itself: another one would falsify what its cases examine.
  private static let ownFields: Set = [
    "connection", "content-length", "expect", "host", "transfer-encoding", "upgrade",
  ]

  /// The reason for which the fields of the options cannot be sent, without their values; `nil` if they can.
  public var fieldFault: String? {
    if Self.isOwn(keyHeader) { return "--key-header: \(keyHeader) is a field of every request" }
    if let line = headers.first(where: isTaken) {
      return "--header: the check makes the field \(line.name) itself"
    }
    if let line = otherCaller, isTaken(line) || Self.isOwn(line.name) {
      return "--other-caller: the check makes the field \(line.name) itself"
    }
    return nil
  }

  private func isTaken(_ line: HeaderLine) -> Bool {
    let name = Self.normalized(line.name)
    return name == Self.normalized(keyHeader) || Self.ownFields.contains(name)
  }

  private static func isOwn(_ name: String) -> Bool {
    ownFields.contains(normalized(name)) || normalized(name) == "content-type"
  }

  /// A name by which many servers know the field, underscores included.
  static func normalized(_ name: String) -> String {
    name.lowercased().replacing("_", with: "-")
  }

  /// True if a name is that of a credential. A request of nobody goes without these fields.
  static func isCredential(_ name: String) -> Bool {
    let name = normalized(name)
    return credentialMarks.contains { name.contains($0) }
      || name.split(separator: "-").contains { credentialWords.contains(String($0)) }
  }

  private static let credentialMarks = [
    "apikey", "accesskey", "authoriz", "authentic", "cookie", "credential", "csrf", "password", "secret",
    "session", "signature", "token", "xsrf",
  ]
  private static let credentialWords: Set = [
    "auth", "hmac", "jwt", "key", "otp", "pass", "passwd", "pin", "pwd", "sid", "sig",
  ]

  /// The fields that are commonly the same for all callers, and no secret of any. All others are redacted.
  private static let neutralFields: Set = [
    "accept", "cache-control", "date", "dnt", "origin", "pragma", "prefer", "priority", "te",
    "traceparent", "tracestate", "user-agent", "x-http-method-override", "x-requested-with",
  ]

  /// The parameters that are commonly the same for all callers, and no secret of any. All others are redacted.
  private static let neutralParameters: Set = [
    "dry-run", "expand", "fields", "format", "include", "lang", "limit", "locale", "offset", "order", "page",
    "page-size", "per-page", "sort", "v", "validate", "version",
  ]

  static func isNeutralField(_ name: String) -> Bool {
    let name = normalized(name)
    return neutralFields.contains(name) || name.hasPrefix("accept-") || name.hasPrefix("content-")
      || name.hasSuffix("-version")
  }

  static func isNeutralParameter(_ name: String) -> Bool {
    let name = normalized(name)
    return neutralParameters.contains(name) || name.hasSuffix("-version")
  }

  /// A value that no report may show.
  struct ConfidentialValue {
    var text: String
    /// True if its name says that it is one. Any other value may be a word that the report needs elsewhere.
    var isCredential: Bool
  }

  var secrets: [ConfidentialValue] {
    headers.filter { !Self.isNeutralField($0.name) }
      .map { ConfidentialValue(text: $0.value, isCredential: Self.isCredential($0.name)) }
      + [otherCaller].compactMap(\.self).map { ConfidentialValue(text: $0.value, isCredential: true) }
      + endpoint.query.filter { !Self.isNeutralParameter($0.name) }.map { parameter in
        // A parameter without a value may be the secret itself.
        let text = parameter.value.isEmpty ? parameter.name : parameter.value
        return ConfidentialValue(text: text, isCredential: Self.isCredential(parameter.name))
      }
  }

  var secretFields: Set<String> {
    Set(
      (headers.filter { !Self.isNeutralField($0.name) } + [otherCaller].compactMap(\.self)).map {
        $0.name.lowercased()
      })
  }

  var secretParameters: Set<String> {
    Set(endpoint.query.map(\.name).filter { !Self.isNeutralParameter($0) })
  }

  /// The part of a request that knows the caller, such as `header:Authorization`; `nil` if none stays the same.
  var callerPart: String? {
    let fields = headers.map(\.name).filter(Self.mayBeCaller)
    let named = [otherCaller?.name].compactMap(\.self).filter { !Self.isForNextProxy($0) }
    let others = fields.filter { !Self.isCredential($0) && !Self.isNeutralField($0) }
    if let field = (named + fields.filter(Self.isCredential) + others).first { return "header:\(field)" }
    let parameter = endpoint.query.first {
      !$0.value.isEmpty && Self.isCredential($0.name) && Self.mayBeCaller($0.name)
    }
    return parameter.map { "query:\($0.name)" }
  }

  /// True if an option may say who the caller is, be it with a value that no configuration can go by.
  var mayNameCaller: Bool {
    otherCaller != nil
      || headers.contains { !Self.isNeutralField($0.name) && !Self.isForNextProxy($0.name) }
      || endpoint.query.contains { Self.isCredential($0.name) }
  }

  /// True if a field can be a part of the caller: not one for the next proxy, nor a proof of one delivery or page.
  private static func mayBeCaller(_ name: String) -> Bool {
    let marks = [
      "csrf", "xsrf", "signature", "hmac", "nonce", "timestamp", "request-id", "correlation-id", "otp",
    ]
    let normal = normalized(name)
    return !isForNextProxy(name) && !marks.contains { normal.contains($0) }
      && !normal.split(separator: "-").contains("sig")
  }

  private static func isForNextProxy(_ name: String) -> Bool { name.lowercased() == "proxy-authorization" }
}
