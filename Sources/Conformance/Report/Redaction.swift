/// Takes secrets out of what a report shows.
///
/// It changes the evidence and not the finished text: no escape of a format can then hide a secret from it.
struct Redaction {
  static let mark = "[redacted]"
  private let secrets: [String]

  init(_ setup: Setup) {
    // `Bearer` and `Basic` are no secrets, but what follows them is one by itself. The longest come first.
    let parts = setup.secrets.flatMap { [$0] + $0.split(separator: " ").dropFirst().map(String.init) }
    secrets = Set(parts).filter { $0.count >= 3 }.sorted { ($0.count, $0) > ($1.count, $1) }
  }

  func text(_ text: String) -> String {
    secrets.reduce(text) { $0.replacing($1, with: Self.mark) }
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
    exchange.request.target = text(exchange.request.target)
    exchange.request.lines = exchange.request.lines.map(text)
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
  /// The endpoint without the credentials in its query.
  var redactedURL: String { Redaction(self).text(endpoint.url) }
}

extension Report {
  /// The report without the secrets of its setup.
  var redacted: Report {
    let redaction = Redaction(setup)
    var report = self
    report.results = results.map(redaction.result)
    report.setup.endpoint.target = redaction.text(setup.endpoint.target)
    return report
  }
}
