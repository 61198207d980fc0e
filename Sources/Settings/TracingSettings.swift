import Idempotency

/// The destination and the sampling of spans.
public struct TracingSettings: Hashable, Sendable {
  /// The collector's base URL without user and password. The path `/v1/traces` is appended to it.
  public var otlp: String
  /// The part of the URL before the `@`, as written: user and password, percent-encoded.
  public var userinfo: Secret?
  /// The number of traces that begin here for each one that is kept.
  public var sample = 1

  public init(otlp: String) { self.otlp = otlp }
}

extension TracingSettings {
  static func read(_ section: Section) -> TracingSettings? {
    var sample = 1
    section.integer("sample", into: &sample, in: 1...1_000_000)
    guard let otlp = section.member("otlp") else {
      section.refuseMissing("otlp", "is missing: write the collector's URL, such as http://127.0.0.1:4318")
      return nil
    }
    let url = otlp.parsed("the collector's URL, such as http://127.0.0.1:4318") { text throws(Refusal) in
      let rest = ["http://", "https://"].first { text.hasPrefix($0) }.map { text.dropFirst($0.count) }
      guard let rest, let host = rest.split(separator: "/", omittingEmptySubsequences: false).first,
        !host.isEmpty, !rest.contains(where: { $0.isWhitespace || $0 == "?" || $0 == "#" })
      else { throw Refusal("must be an http or https URL without query, such as http://127.0.0.1:4318") }
      guard !rest.dropFirst(host.count).contains("@") else {
        throw Refusal("must have user and password percent-encoded: % as %25, @ as %40, / as %2F")
      }
      let base = text.hasSuffix("/") ? String(text.dropLast()) : text
      guard !base.hasSuffix("/v1/traces") else {
        throw Refusal(
          "must end before /v1/traces, which is added: write it without, such as http://127.0.0.1:4318")
      }
      return base
    }
    guard let url else { return nil }
    var settings = TracingSettings(url: url)
    settings.sample = sample
    return settings
  }

  /// Separates user and password from a URL.
  ///
  /// - Parameter url: The URL with its scheme, and with user and password if it has them.
  private init(url: String) {
    otlp = url
    guard let scheme = url.firstRange(of: "://"), let at = url.lastIndex(of: "@") else { return }
    userinfo = Secret(String(url[scheme.upperBound..<at]))
    otlp = String(url[..<scheme.upperBound] + url[url.index(after: at)...])
  }

  /// The URL with user and password, for the one place that sends to it.
  public var revealedURL: String {
    guard let userinfo, let scheme = otlp.firstRange(of: "://") else { return otlp }
    return otlp[..<scheme.upperBound] + userinfo.revealed + "@" + otlp[scheme.upperBound...]
  }
}

extension TracingSettings {
  var shown: Shown {
    ["otlp": .text(otlp), "userinfo": userinfo.map(Shown.secret), "sample": .number(sample)]
  }
}
