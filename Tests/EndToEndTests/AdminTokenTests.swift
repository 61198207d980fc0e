import Foundation
import TestSupport
import Testing

/// The token of the admin listener.
struct AdminTokenTests {
  /// Letters alone: each of them is a visible character with another bit, too.
  private static let token = "aBcDeFgHxYzW"

  /// The token in other letter cases and lengths, and with one letter changed.
  private static var others: [String] {
    let bytes = Array(token.utf8)
    var others = [
      token.lowercased(), token.uppercased(), String(token.dropLast()), token + "W", "a" + token,
      String(token.reversed()), String(repeating: "~", count: bytes.count), "Bearer \(token)",
    ]
    for index in bytes.indices {
      for other in [bytes[index] ^ 0x20, bytes[index] ^ 0x01, UInt8(ascii: "~")] {
        var changed = bytes
        changed[index] = other
        others.append(String(decoding: changed, as: UTF8.self))
      }
    }
    return others
  }

  @Test func `the first start makes a token that only its owner can read, and the commands find it`()
    async throws
  {
    let folder = TemporaryDirectory()
    let backend = OrdersBackend()
    try await backend.start()
    let ports = SemelProcess.Ports()
    let inFolder = ["sh", "-c", "cd \(folder.path) && exec \"$@\"", "sh"]
    let text = Configuration(admin: ["token_file": "semel.token"]).text(
      ports: ports, backend: backend.port, storePath: folder.file("semel.db"), redis: nil)
    try await Rig.withSlots {
      let process = try await SemelProcess(ports: ports, configuration: text, under: inFolder)
      let made = try FileManager.default.attributesOfItem(atPath: folder.file("semel.token"))
      #expect(made[.posixPermissions] as? Int == 0o600)
      let token = try String(contentsOfFile: folder.file("semel.token"), encoding: .utf8)
      #expect(token.count == 65 && Set(token.dropLast()).count > 4)
      let refused = try await process.admin.send("GET", "/v1/config")
      #expect(refused.status == 401)
      let list = [SemelProcess.binary, "key", "list", "--admin", "http://127.0.0.1:\(ports.admin)"]
      #expect(try await ManagedProcess(inFolder + list).exit() == .code(0))
      #expect(try await ManagedProcess(list).exit() == .code(1))
      try await process.kill()
      // A later start keeps it.
      try await process.start()
      #expect(try String(contentsOfFile: folder.file("semel.token"), encoding: .utf8) == token)
      try await process.kill()
    }
    try await backend.stop()
  }

  @Test func `spaces around the token in its file lock nobody out`() async throws {
    let secrets = TemporaryDirectory()
    try "\t \(Self.token) \t\nmore".write(toFile: secrets.file("token"), atomically: true, encoding: .utf8)
    try await Rig.run(Configuration(admin: ["token_file": secrets.file("token")])) { rig in
      for (token, status) in [(Self.token, 200), (" \(Self.token) ", 200), ("", 401), (" ", 401)] {
        let response = try await rig.semel.admin.send(
          "GET", "/v1/config", [("Authorization", "Bearer \(token)")])
        #expect(response.status == status, "\(token)")
      }
      try await rig.key(["list", "--token-file", secrets.file("token")])
    }
    withExtendedLifetime(secrets) {}
  }

  @Test func `each byte of the token counts`() async throws {
    let secrets = TemporaryDirectory()
    try "\(Self.token)\n".write(toFile: secrets.file("token"), atomically: true, encoding: .utf8)
    try await Rig.run(Configuration(admin: ["token_file": secrets.file("token")])) { rig in
      func status(_ token: String, _ scheme: String = "Bearer") async throws -> Int {
        try await rig.semel.admin.send("GET", "/v1/config", [("Authorization", "\(scheme) \(token)")]).status
      }
      let own = try await status(Self.token)
      #expect(own == 200)
      // A scheme may have any letter case.
      for scheme in ["bearer", "BEARER"] { #expect(try await status(Self.token, scheme) == 200) }
      for scheme in ["Basic", "Bearer,"] { #expect(try await status(Self.token, scheme) == 401) }
      for other in Self.others {
        #expect(try await status(other) == 401, "\(other)")
      }
    }
    withExtendedLifetime(secrets) {}
  }
}
