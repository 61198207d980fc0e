import Foundation
import TestSupport
import Testing

/// The names of keys and callers in the log.
struct LogDigestTests {
  /// The digests of the keys that a process has logged.
  private func keys(_ process: ManagedProcess) -> Set<String> {
    Set(
      process.output.split(separator: "\n").compactMap { line in
        (try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["key"] as? String
      })
  }

  /// The first digits of the plain SHA-256 of `abc` (FIPS 180-2, appendix B.1), which anybody can compute.
  private static let plain = "ba7816bf"

  @Test func `nodes share a secret that the store keeps, over restarts`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      let fact = ["HGET", "semel:facts", "log_secret"]
      let deadline = ContinuousClock.now + .seconds(30)
      while try rig.redis?.command(fact) == nil, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(20))
      }
      let secret = try #require(try rig.redis?.command(fact))
      #expect(secret.utf8.count == 64)
      let node = try await rig.secondNode()
      // Their first log entries may precede their reading it.
      var shared: Set<String> = []
      while shared.isEmpty, ContinuousClock.now < deadline {
        _ = try await rig.order("abc")
        _ = try await rig.order("abc", at: node)
        shared = keys(rig.semel.process).intersection(keys(node.process))
      }
      #expect(shared.count == 1 && !shared.contains(Self.plain), "\(shared)")
      try await node.kill()
    }
  }

  @Test func `a configured secret keys digests and record ids`() async throws {
    let secrets = TemporaryDirectory()
    try "0123456789abcdef0123456789abcdef\n".write(
      toFile: secrets.file("id"), atomically: true, encoding: .utf8)
    let ids = Watched<[String]>([])
    for members in [["id_secret_file": secrets.file("id")], ["id_secret_file": secrets.file("id")], [:]] {
      try await Rig.run(Configuration(storeMembers: members)) { rig in
        expectExecuted(try await rig.order("abc"))
        let id = try #require(rig.backend.requests[0].requestID)
        ids.withValue { $0.append(id) }
        let found = try await rig.semel.admin.send(
          "POST", "/v1/records/find", [("Content-Type", "application/json")],
          body: #"{"route":"orders","key":"abc","method":"POST","path":"/v1/orders","host":"orders.example","#
            + #""caller":{"header:Authorization":"Bearer alice"}}"#)
        #expect(found.text.contains(#""id":"\#(id)""#) && found.text.contains("completed"), "\(found.text)")
        try await rig.semel.process.line(containing: #""key":""#)
        #expect(!keys(rig.semel.process).contains(Self.plain))
      }
    }
    let made = ids.value
    #expect(made.count == 3 && made[0] == made[1] && made[1] != made[2], "\(made)")
  }
}
