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

  /// Creates the bodies from the first one.
  ///
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
  /// The pointers to the members of an object.
  fileprivate var memberPointers: [String] {
    guard case .object(let members) = self else { return [""] }
    return members.map { "/" + $0.name.replacing("~", with: "~0").replacing("/", with: "~1") }
  }

  /// Another value of the same type; `nil` if there is none.
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
