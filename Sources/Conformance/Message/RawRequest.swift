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
