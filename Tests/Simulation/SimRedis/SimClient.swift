/// One connection at a server.
final class SimClient {
  /// A wait for copies, after which the connection's commands go on.
  struct Wait {
    let replicas: Int
    /// Whether the server itself must have the changes on its disk; `nil` for `WAIT`, which asks for no disk.
    let local: Bool?
    /// The place in the stream that replicas must have reached.
    let place: Int64
    /// The time of the server's clock at which the wait ends; `nil` for none.
    let deadline: Int64?
  }

  let id: Int
  var parser = RESPParser()
  var database = 0
  var name = ""
  var isAuthenticated: Bool
  /// Whether the next command may use a slot that is being imported.
  var isAsking = false
  /// The place in the stream after the connection's last write.
  var lastWrite: Int64 = 0
  var wait: Wait?
  /// The channels in the order of subscription.
  var channels: [Bytes] = []

  init(id: Int, isAuthenticated: Bool) {
    self.id = id
    self.isAuthenticated = isAuthenticated
  }
}

/// An act of a server on a connection.
package enum SimRedisOutput: Equatable, Sendable {
  case bytes(connection: Int, Bytes)
  case close(connection: Int)
}
