/// The number of a connection at one run of one server, which no other connection of that run gets.
struct RedisSession: Equatable {
  /// The first version of Redis whose `SET` takes `NX` and `GET` together.
  private static let minVersion = 7

  /// The server's run, by its random name.
  let run: String
  let client: Int64

  /// A command that ends a connection of the server's present run. Redis reads nothing more of that.
  static func ending(_ client: Int64) -> [String] { ["CLIENT", "KILL", "ID", "\(client)"] }

  /// The same for a connection that does not exist, which tests whether Semel may end its own.
  static let trial = ending(.max)

  /// Creates the session of a new connection; `nil` if the server cannot claim without a script, or if Semel may end no
  /// connections.
  ///
  /// - Parameters:
  ///   - server: The reply to `INFO server`.
  ///   - client: The reply to `CLIENT ID`.
  ///   - trial: The reply to `trial`.
  init?(server: RedisValue?, client: RedisValue?, trial: RedisValue?) {
    guard case .integer(let client) = client, case .integer = trial, let run = server?.info("run_id"),
      let version = server?.info("redis_version")?.prefix(while: { $0 != "." }),
      let major = Int(version), major >= Self.minVersion
    else { return nil }
    self.init(run: String(run), client: client)
  }

  init(run: String, client: Int64) {
    self.run = run
    self.client = client
  }
}
