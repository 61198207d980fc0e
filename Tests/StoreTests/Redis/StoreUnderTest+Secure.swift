import Store
import TestSupport

extension StoreUnderTest {
  static let secure = StoreUnderTest("Redis over TLS") {
    var settings = try await SharedSecureRedis.settings
    settings.namespace = RedisEndpointSettings.ownNamespace()
    return Opened(settings)
  }
}

/// The server with TLS of all tests that change nothing about it.
private enum SharedSecureRedis {
  private static let started = Task {
    let server = try await SecureRedis(try await Certificates())
    return (server, try await server.trusted())
  }

  static var settings: RedisEndpointSettings {
    get async throws {
      try Tool.require("redis-server")
      try Tool.require("openssl")
      return try await started.value.1
    }
  }
}
