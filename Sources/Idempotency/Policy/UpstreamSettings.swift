/// One configured backend.
package struct UpstreamSettings: Hashable, Sendable {
  package enum Host: Hashable, Sendable {
    /// What the client sent.
    case preserve
    /// The authority of `url`.
    case upstream
    case name(String)
  }
  package enum Address: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  package var name: String
  package var address: Address
  package var host: Host = .preserve
  package var connectTimeout: Milliseconds = .seconds(2)
  package var responseTimeout: Milliseconds = .seconds(30)
  package var settle: Milliseconds = .seconds(30)
  package var idleTimeout: Milliseconds = .seconds(4)
  package var connectRetries = 3
  /// In all, over every event loop.
  package var maxConnections = 256

  package init(name: String, address: Address) {
    self.name = name
    self.address = address
  }
}
