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
