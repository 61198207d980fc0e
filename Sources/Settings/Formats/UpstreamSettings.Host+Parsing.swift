import Idempotency

extension UpstreamSettings.Host {
  /// Parses `preserve`, `upstream`, or a value for the `Host` field: a name with or without a port.
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
