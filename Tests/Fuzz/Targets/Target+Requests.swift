import WireOracle

extension Target {
  /// A client's stream of HTTP/1.1, compared with what NIO's own decoder makes of it.
  static func requestsFault(in bytes: [UInt8]) -> String? {
    guard case .broken(let fault) = WireFuzz.check(bytes) else { return nil }
    return fault
  }
}
