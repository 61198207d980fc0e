/// The address of a server: a host and a port, or a Unix socket.
public enum ServerAddress: Hashable, Sendable, CustomStringConvertible {
  /// A name or an IP address, which has no brackets here, and a port. For a listener, port 0 is any free port.
  case tcp(host: String, port: Int)
  case unix(path: String)

  /// The name or IP address; `nil` for a Unix socket.
  public var host: String? {
    if case .tcp(let host, _) = self { host } else { nil }
  }

  /// The address as in the configuration: `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`.
  public var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    }
  }
}
