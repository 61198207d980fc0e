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
  static let schema = Schema(TracingSettings(otlp: "")) {
    Member("otlp", \.url, .collector, "the collector's URL; `/v1/traces` is added")
      .required("is missing: write the collector's URL, such as http://127.0.0.1:4318")
      .showing { .text($0.otlp) }
    Member(shown: "userinfo") { $0.userinfo.map(Shown.secret) }
    Member(
      "sample", \.sample, .integer(1...1_000_000), "the number of traces that begin here of which one is kept"
    )
  }.restart

  private var url: String {
    get { revealedURL }
    set {
      (otlp, userinfo) = (newValue, nil)
      guard let scheme = newValue.firstRange(of: "://"), let at = newValue.lastIndex(of: "@") else { return }
      userinfo = Secret(String(newValue[scheme.upperBound..<at]))
      otlp = String(newValue[..<scheme.upperBound] + newValue[newValue.index(after: at)...])
    }
  }

  /// The URL with user and password, for the one place that sends to it.
  public var revealedURL: String {
    guard let userinfo, let scheme = otlp.firstRange(of: "://") else { return otlp }
    return otlp[..<scheme.upperBound] + userinfo.revealed + "@" + otlp[scheme.upperBound...]
  }
}

extension Notation<String> {
  fileprivate static let collector = Notation.text(
    "the collector's URL, such as http://127.0.0.1:4318", values: "an http or https URL", show: { .text($0) }
  ) { text throws(Refusal) in
    let rest = ["http://", "https://"].first { text.hasPrefix($0) }.map { text.dropFirst($0.count) }
    guard let rest, let host = rest.split(separator: "/", omittingEmptySubsequences: false).first,
      !host.isEmpty, !rest.contains(where: { $0.isWhitespace || $0 == "?" || $0 == "#" })
    else { throw Refusal("must be an http or https URL without query, such as http://127.0.0.1:4318") }
    guard !rest.dropFirst(host.count).contains("@") else {
      throw Refusal("must have user and password percent-encoded: % as %25, @ as %40, / as %2F")
    }
    let base = text.hasSuffix("/") ? String(text.dropLast()) : text
    try require(
      !base.hasSuffix("/v1/traces"),
      "must end before /v1/traces, which is added: write it without, such as http://127.0.0.1:4318")
    return base
  }
}
