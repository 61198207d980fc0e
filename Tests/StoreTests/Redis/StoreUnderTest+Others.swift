import Store
import TestSupport

extension StoreUnderTest {
  /// A store on each other server that the tests' environment has.
  static let others = OtherRedis.available.map { kind in
    StoreUnderTest(kind.rawValue) {
      Opened(.on(try await SharedOther.server(of: kind)))
    }
  }
}

/// The servers of all tests that need nothing special of them.
private enum SharedOther {
  private static let started: [OtherRedis: Task<RedisServer, any Error>] = Dictionary(
    uniqueKeysWithValues: OtherRedis.available.map { kind in
      (kind, Task { try await RedisServer(program: kind.program) })
    })

  static func server(of kind: OtherRedis) async throws -> RedisServer {
    guard let server = started[kind] else { throw TestFailure("there is no \(kind.rawValue)") }
    return try await server.value
  }
}
