import Glibc
import TestSupport
import Testing

/// Unix sockets on every side.
struct SocketTests {
  @Test func `a served socket is not taken over, and another process's is not removed`() async throws {
    let directory = TemporaryDirectory()
    let path = directory.file("semel.sock")
    let configuration = Configuration(top: ["listen": "[{address: 'unix:\(path)'}]"])
    try await Rig.run(configuration) { rig in
      // A second instance, with a store and an admin listener of its own.
      var other = configuration
      let ports = SemelProcess.Ports()
      other.storeMembers = ["path": directory.file("other.db")]
      let text = other.text(
        ports: ports, backend: rig.backend.port, storePath: directory.file("other.db"), redis: nil)
      let refused = await #expect(throws: TestFailure.self) {
        _ = try await SemelProcess(ports: ports, configuration: text)
      }
      #expect("\(refused as Any)".contains("another process listens there"))
      let client = try await RawClient(path: path)
      try await client.send(Rig.orderText("k"))
      expectExecuted(try await client.response())
      try await client.close()

      // Somebody has put a socket of its own in the place.
      #expect(unlink(path) == 0)
      let newcomer = try RawServer(.unix(path: path)) { _ in }
      rig.semel.terminate()
      try await rig.semel.process.exit()
      var found = stat()
      #expect(stat(path, &found) == 0)
      withExtendedLifetime(newcomer) {}

      // Left to itself it cleans up.
      #expect(unlink(path) == 0)
      try await rig.semel.start()
      #expect(stat(path, &found) == 0)
      rig.semel.terminate()
      try await rig.semel.process.exit()
      #expect(stat(path, &found) != 0)
    }
  }

  @Test func `client, backend and Redis may be reached by unix sockets`() async throws {
    try await Rig.withSlots {
      let directory = TemporaryDirectory()
      let backend = OrdersBackend(path: directory.file("backend.sock"))
      try await backend.start()
      let redis = try await RedisServer()
      let ports = SemelProcess.Ports()
      let configuration = Configuration(
        top: ["listen": "[{address: 'unix:\(directory.file("semel.sock"))'}]"],
        upstream: ["url": "'unix:\(directory.file("backend.sock"))'"],
        storeMembers: ["kind": "redis", "url": "'unix:\(redis.socketPath)'"])
      let semel = try await SemelProcess(
        ports: ports,
        configuration: configuration.text(ports: ports, backend: 0, storePath: "''", redis: redis))
      for isFirst in [true, false] {
        let client = try await RawClient(path: directory.file("semel.sock"))
        try await client.send(Rig.orderText("k"))
        let response = try await client.response()
        if isFirst { expectExecuted(response) } else { expectReplayed(response, 201) }
      }
      #expect(backend.requests.count == 1)
      // Its owner and its group may connect, and nobody else.
      var found = stat()
      #expect(stat(directory.file("semel.sock"), &found) == 0)
      #expect(found.st_mode & 0o777 == 0o660)
      // Started again, it does not stumble over the socket that the killed process left.
      try await semel.kill()
      try await semel.start()
      let client = try await RawClient(path: directory.file("semel.sock"))
      try await client.send(Rig.orderText("k"))
      expectReplayed(try await client.response(), 201)
      try await semel.kill()
      try await backend.stop()
    }
  }
}
