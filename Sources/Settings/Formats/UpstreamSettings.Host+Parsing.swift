import Idempotency

extension UpstreamSettings.Host {
  /// Reads `preserve`, `upstream`, or what the `Host` field is to say: a name, with a port where it has one.
  static func parse(_ text: String) throws(Refusal) -> Self {
    switch text {
    case "preserve": return .preserve
    case "upstream": return .upstream
    default:
      _ = try HostPort.parse(text, port: 80)
      return .name(text)
    }
  }
}
