import Wire

/// The bytes of one request. Nothing is added, quoted or repeated on their way.
public struct RawRequest: Hashable, Sendable {
  public var method: String
  public var target: String
  /// The field lines as they are sent, without their line ends.
  public var lines: [String]
  /// The body as it is sent, with its framing.
  public var body: [UInt8] = []

  public var bytes: [UInt8] {
    Array(([method + " " + target + " HTTP/1.1"] + lines).map { $0 + "\r\n" }.joined().utf8) + [13, 10] + body
  }
}

/// One field line, such as that of an option.
public struct HeaderLine: Hashable, Sendable {
  public var name: String
  public var value: String

  public var line: String { "\(name): \(value)" }
}

extension HeaderLine {
  /// Parses `Name: value`; `nil` if the name is no token or the line has a control character.
  public init?(_ text: String) {
    guard let colon = text.firstIndex(of: ":") else { return nil }
    let name = text[..<colon]
    let value = text[text.index(after: colon)...]
    guard !name.isEmpty, name.utf8.allSatisfy(ASCII.isTokenByte),
      !text.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F })
    else { return nil }
    self.init(name: String(name), value: String(value.drop(while: \.isWhitespace)))
  }
}

/// A complete response.
public struct RawResponse: Equatable, Sendable {
  public var status: Int
  public var fields: [HeaderLine] = []
  /// The body without its framing.
  public var body: [UInt8] = []

  /// The values of all fields of this name, joined as HTTP joins them; `nil` if there is none.
  public subscript(name: String) -> String? {
    let name = name.lowercased()
    let values = fields.filter { $0.name.lowercased() == name }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  public var isSuccess: Bool { 200..<300 ~= status }
  public var isRefusal: Bool { 400..<500 ~= status }
  public var isServerError: Bool { status >= 500 }
  /// Whether it may refuse a delivery because an equal one is in flight: a conflict, or a word for *later*.
  public var mayBeInFlight: Bool { [409, 423, 425, 429].contains(status) || isServerError }
  public var text: String { String(decoding: body, as: UTF8.self) }
  public var json: JSONValue? { JSONValue(body) }

  /// Whether both have the same status and the same bytes of a body.
  public func hasSameResult(as other: RawResponse) -> Bool { status == other.status && body == other.body }

  /// The media type, in lower case and without parameters.
  public var mediaType: String? {
    self["Content-Type"].map { value in
      value.prefix { $0 != ";" }.filter { !$0.isWhitespace }.lowercased()
    }
  }
}

extension RawResponse {
  /// The document that explains a refusal: a `Link` with the relation `describedby` or `help`, else the `type` of a
  /// problem document (RFC 9457), else a link in the body (section 2.7 of the draft).
  public var documentation: String? {
    if let link = linked { return link }
    if let type = json?.value(at: "/type")?.scalarText, Endpoint(type) != nil || type.hasPrefix("/") {
      return type
    }
    let start = text.firstRange(of: "https://")?.lowerBound ?? text.firstRange(of: "http://")?.lowerBound
    guard let start else { return nil }
    return String(text[start...].prefix { !$0.isWhitespace && !"\"'<>)\\".contains($0) })
  }

  private var linked: String? {
    for value in (self["Link"] ?? "").split(separator: ",") {
      let parts = value.split(separator: ";").map { $0.trimmingSpace }
      guard let target = parts.first, target.hasPrefix("<"), target.hasSuffix(">") else { continue }
      let relations = parts.dropFirst().map { $0.lowercased().filter { $0 != "\"" && $0 != " " } }
      if relations.contains(where: { $0 == "rel=describedby" || $0 == "rel=help" }) {
        return String(target.dropFirst().dropLast())
      }
    }
    return nil
  }

  /// Whether it is a problem document, or leads to the documentation.
  public var isDescribed: Bool { mediaType == "application/problem+json" || documentation != nil }
}

extension Substring {
  var trimmingSpace: String {
    var text = self
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }
}
