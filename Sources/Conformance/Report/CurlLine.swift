import Wire

/// A request as a command line of curl, for a reader who wants to reproduce a failure.
enum CurlLine {
  /// The fields that curl makes by itself.
  private static let own: Set = ["host", "content-length", "accept", "user-agent", "transfer-encoding"]

  static func text(_ request: RawRequest, at endpoint: Endpoint) -> String {
    var place = endpoint
    place.target = request.target
    var words = ["curl -i"]
    if request.method != "POST" || request.body.isEmpty { words.append("-X \(request.method)") }
    words.append(quoted(place.url))
    for line in request.lines {
      let name = line.prefix { $0 != ":" }.lowercased()
      if own.contains(name) { continue }
      // curl takes `Name:` for the order to leave the field out; `Name;` sends it empty.
      let isEmpty = line.drop { $0 != ":" }.dropFirst().allSatisfy(\.isWhitespace)
      words.append("-H " + quoted(isEmpty ? line.prefix { $0 != ":" } + ";" : line))
    }
    let isChunked = request.lines.contains("Transfer-Encoding: chunked")
    if isChunked { words.append("-H 'Transfer-Encoding: chunked'") }
    let body = isChunked ? unchunked(request.body) : request.body
    if !body.isEmpty { words.append("--data-binary " + quoted(String(decoding: body, as: UTF8.self))) }
    return words.joined(separator: " ")
  }

  /// A text as one word of a shell. A long text is shortened, and its length given.
  static func quoted(_ text: String) -> String {
    let text = shortened(text)
    guard text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
      return "'" + text.replacing("'", with: "'\\''") + "'"
    }
    let escaped = text.unicodeScalars.map { scalar -> String in
      switch scalar {
      case "'", "\\": "\\\(scalar)"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F:
        "\\x" + UInt8(scalar.value).hexText
      default: String(scalar)
      }
    }
    return "$'" + escaped.joined() + "'"
  }

  static func shortened(_ text: String) -> String {
    text.utf8.count <= 1200 ? text : "\(text.prefix(200))… (\(text.utf8.count) bytes)"
  }

  private static func unchunked(_ body: [UInt8]) -> [UInt8] {
    var rest = body[...]
    var content: [UInt8] = []
    while let end = rest.firstRange(of: [13, 10]),
      let size = Int(String(decoding: rest[..<end.lowerBound], as: UTF8.self), radix: 16), size > 0
    {
      content += rest[end.upperBound...].prefix(size)
      rest = rest[end.upperBound...].dropFirst(size + 2)
    }
    return content
  }
}
