import Glibc
import Synchronization

/// A server that speaks Redis' protocol and replies what its script says, for what real servers seldom do.
package final class ScriptedRedis: Sendable {
  private let server: RawServer
  private let log: Commands

  private final class Commands: Sendable {
    let list = Mutex<[(connection: Int, words: [String])]>([])
  }

  package var port: Int { server.port }
  /// The commands that arrived, those of all connections together.
  package var commands: [[String]] { log.list.withLock { $0.map(\.words) } }
  /// The commands of each connection that has sent any, in their order.
  package var commandsByConnection: [[[String]]] {
    let list = log.list.withLock { $0 }
    return Dictionary(grouping: list, by: \.connection).sorted { $0.key < $1.key }
      .map { $0.value.map(\.words) }
  }

  /// Starts a server.
  ///
  /// - Parameter reply: The bytes that follow a command; `nil` for none. An empty text closes the connection.
  package init(reply: @escaping @Sendable ([String]) -> String?) throws {
    let log = Commands()
    self.log = log
    server = try RawServer { connection in
      while true {
        let words = try Self.command(connection)
        log.list.withLock { $0.append((connection.number, words)) }
        guard let bytes = reply(words) else { continue }
        if bytes.isEmpty { return }
        try connection.write(bytes)
      }
    }
  }

  deinit { server.close() }

  /// A reply of texts, as an array.
  package static func array(_ texts: [String]) -> String {
    "*\(texts.count)\r\n" + texts.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
  }

  /// The reply to `TIME`.
  package static func time() -> String {
    let now = clockMilliseconds()
    return array(["\(now / 1000)", "\(now % 1000 * 1000)"])
  }

  private static func clockMilliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }

  private static func command(_ connection: RawConnection) throws -> [String] {
    guard let count = Int(try line(connection).dropFirst()) else { return [] }
    return try (0..<count).map { _ in
      let length = Int(try line(connection).dropFirst()) ?? 0
      return String(decoding: try connection.read(length + 2).dropLast(2), as: UTF8.self)
    }
  }

  private static func line(_ connection: RawConnection) throws -> String {
    var bytes: [UInt8] = []
    while bytes.suffix(2) != [0x0D, 0x0A] { bytes += try connection.read(1) }
    return String(decoding: bytes.dropLast(2), as: UTF8.self)
  }
}
