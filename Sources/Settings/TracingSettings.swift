/// Where spans go.
public struct TracingSettings: Hashable, Sendable {
  /// The collector's base URL; `/v1/traces` is added to it.
  public var otlp: String
  /// Of so many traces that begin here one is kept.
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
      return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
    guard let url else { return nil }
    var settings = TracingSettings(otlp: url)
    settings.sample = sample
    return settings
  }
}
