import Wire

/// Takes secrets out of the evidence, and not of the finished text, where an escape could hide one.
struct Redaction {
  static let mark = "[redacted]"
  private let secrets: [String]
  private let fields: Set<String>
  private let parameters: Set<String>

  init(_ setup: Setup) {
    let texts = setup.secrets.flatMap { secret -> [String] in
      // A value without the name of a credential may be a word that means something else elsewhere.
      guard secret.isCredential else { return secret.text.count < 6 ? [] : [secret.text] }
      // `Bearer` and `Basic` are no secrets, but what follows them is one by itself.
      return [secret.text] + secret.text.split(separator: " ").dropFirst().map(String.init)
    }
    // The longest come first.
    secrets = Set(texts).filter { $0.count >= 3 }.sorted { ($0.count, $0) > ($1.count, $1) }
    fields = setup.secretFields
    parameters = setup.secretParameters
  }

  func text(_ text: String) -> String {
    secrets.reduce(text) { $0.replacing($1, with: Self.mark) }
  }

  /// A field line of a request. The value of a confidential field is redacted, however short it is.
  private func line(_ line: String) -> String {
    let name = line.prefix { $0 != ":" }
    return fields.contains(name.lowercased()) ? "\(name): \(Self.mark)" : text(line)
  }

  /// A path with its query. The value of a confidential parameter is redacted, however short it is.
  func target(_ target: String) -> String {
    guard let mark = target.firstIndex(of: "?") else { return text(target) }
    let query = target[target.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
    return text(String(target[..<mark])) + "?" + query.map(parameter).joined(separator: "&")
  }

  private func parameter(_ parameter: Substring) -> String {
    let name = parameter.prefix { $0 != "=" }
    guard parameters.contains(String(name)) else { return text(String(parameter)) }
    return name.endIndex == parameter.endIndex ? Self.mark : "\(name)=\(Self.mark)"
  }

  private func bytes(_ bytes: [UInt8]) -> [UInt8] {
    guard !secrets.isEmpty else { return bytes }
    return Array(text(String(decoding: bytes, as: UTF8.self)).utf8)
  }

  func result(_ result: CaseResult) -> CaseResult {
    var result = result
    result.verdict.reason = text(result.verdict.reason)
    if var evidence = result.evidence {
      evidence.exchanges = evidence.exchanges.map(exchange)
      result.evidence = evidence
    }
    return result
  }

  private func exchange(_ exchange: Exchange) -> Exchange {
    var exchange = exchange
    exchange.request.target = target(exchange.request.target)
    exchange.request.lines = exchange.request.lines.map(line)
    exchange.request.body = bytes(exchange.request.body)
    if case .response(let response) = exchange.outcome {
      exchange.outcome = .response(
        RawResponse(
          status: response.status, fields: response.fields.map(field), body: bytes(response.body)))
    }
    return exchange
  }

  /// A field of a response; a cookie that it sets is a secret, too.
  private func field(_ field: HeaderLine) -> HeaderLine {
    let isCookie = field.name.lowercased() == "set-cookie"
    return HeaderLine(name: field.name, value: isCookie ? Self.mark : text(field.value))
  }
}

extension Setup {
  var redactedURL: String {
    var shown = endpoint
    shown.target = Redaction(self).target(endpoint.target)
    return shown.url
  }
}

extension Report {
  var redacted: Report {
    let redaction = Redaction(setup)
    var report = self
    report.results = results.map(redaction.result)
    report.setup.endpoint.target = redaction.target(setup.endpoint.target)
    return report
  }
}

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
