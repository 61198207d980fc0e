import Idempotency

/// The connection to a Redis server.
public struct RedisSettings: Hashable, Sendable {
  public enum Endpoint: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  public var endpoint: Endpoint
  public var user: String?
  public var password: Secret?
  /// The number of the database.
  public var database = 0

  public init(endpoint: Endpoint) { self.endpoint = endpoint }
}

extension RedisSettings {
  /// The URL, with the user and the password as members of their own.
  var shownMembers: [Shown.Member] {
    let url =
      switch endpoint {
      case .tcp(let host, let port): "redis://\(HostPort(host: host, port: port).text)/\(database)"
      case .unix(let path): "unix:\(path)"
      }
    return [
      .init("url", .text(url)), .init("user", user.map(Shown.text)),
      .init("password", password.map(Shown.secret)),
    ]
  }
}
