import Foundation
import TestSupport
import Testing

/// Statements of `semel key` that cannot be meant so: their texts name the fault and the remedy.
struct KeyUsageTests {
  @Test func `a method in other letters than the proxy takes is refused by each command`() async throws {
    try await Rig.run(Configuration(route: ["match": "{path: '/v1/**'}"])) { rig in
      expectExecuted(try await rig.order("a"))
      for command in [
        ["show"], ["forget"], ["resolve", "--not-applied"], ["resolve", "--applied", "--status", "201"],
        ["put", "--applied", "--status", "201"],
      ] {
        for method in ["post", "Post"] {
          let refused = try await rig.key(
            command + Rig.selection("a") + ["--method", method], ends: .code(1))
          #expect(
            refused.errors.hasPrefix(
              "semel: a delivery with the method \(method) is refused (bad_request): Send the method in capitals"
            ), "\(command): \(refused.errors)")
        }
      }
      // As such a delivery is.
      let response = try await rig.semel.client.send("post", "/v1/orders", Rig.fields(key: "a"), body: "{}")
      expectRefused(response, 400, "bad_request", retryable: false)
    }
  }

  @Test func `a body beyond the listener's limit is refused with that limit`() async throws {
    let directory = TemporaryDirectory()
    try Data(count: 9 << 20).write(to: URL(filePath: directory.file("body")))
    try await Rig.run { rig in
      let applied = ["--applied", "--status", "201", "--body", directory.file("body")] + Rig.selection("a")
      for command in [["put"], ["resolve"]] {
        let refused = try await rig.key(command + applied, ends: .code(1))
        #expect(
          refused.errors
            == "semel: the request is larger than 8 MiB, which leaves room for bodies of 6 MiB in it: "
            + "state a shorter body\n")
      }
    }
    withExtendedLifetime(directory) {}
  }

  @Test(arguments: [
    (["--route", "a", "--all-routes"], "--route and --all-routes are both given: give one of the two"),
    (["--route", "a", "--amend"], "--amend goes with one record"),
    (["--route", "a", "--key", "k"], "leave out --id, --key, --caller, --path, --method and --host"),
    (["--id", "a"], "leave out --id, --key, --caller, --path, --method and --host"),
    (["--route", "a", "--attempt", "1"], "--attempt goes with one record"),
    ([], "--older-than goes with --route, or with --all-routes"),
  ])
  func `a statement about many records is refused with what is wrong in it`(
    options: [String], text: String
  ) async throws {
    let bulk = [SemelProcess.binary, "key", "resolve", "--not-applied", "--older-than", "1s"]
    let refused = try ManagedProcess(bulk + options)
    #expect(try await refused.exit() == .code(2), "\(refused.output)")
    #expect(refused.errors.contains(text), "\(refused.errors)")
  }
}
