import Foundation
import TestSupport
import Testing

/// `semel explain` on the parts of a caller.
struct ExplainCallerTests {
  private static func explain(
    caller: String, _ arguments: [String], key: String = "k", top: String = "",
    ends exit: ManagedProcess.Exit = .code(0)
  ) async throws -> String {
    let text = """
      upstreams: {orders: {url: "http://127.0.0.1:9000"}}
      store: {kind: embedded, path: records.db}
      routes: [{name: orders, match: {path: /v1/orders}, caller: \(caller)}]
      \(top)

      """
    let directory = TemporaryDirectory()
    try text.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let command = [SemelProcess.binary, "explain", directory.file("semel.yaml"), "POST", "/v1/orders"]
    let process = try ManagedProcess(command + ["-H", "Idempotency-Key: \(key)"] + arguments)
    let end = try await process.exit()
    #expect(end == exit, "\(process.output)\(process.errors)")
    return process.output
  }

  @Test func `of alternatives the one that counts is shown`() async throws {
    let caller = "{parts: ['header:X-Account | cookie:sid']}"
    let cookie = ["-H", "Cookie: sid=s"]
    let session = try await Self.explain(caller: caller, cookie)
    #expect(
      session.contains(
        "header:x-account | cookie:sid: by cookie:sid, the first that it has, present, sha256 "),
      "\(session)")
    let account = try await Self.explain(caller: caller, cookie + ["-H", "X-Account: a"])
    #expect(account.contains("by header:x-account, the first that it has, present"), "\(account)")
    let missing = try await Self.explain(caller: caller, [], ends: .code(1))
    #expect(missing.contains("header:x-account | cookie:sid: missing\n"), "\(missing)")
  }

  @Test func `a token in a cookie is read where the caller names it`() async throws {
    let caller = "{parts: ['jwt:sub | jwt:sub@cookie:session']}"
    // {"alg":"none"} and {"sub":"alice"}
    let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."
    let text = try await Self.explain(
      caller: caller, ["-H", "Cookie: session=\(token)"], top: "jwt: {verify: none}")
    #expect(text.contains("by jwt:sub@cookie:session, the first that it has, present"), "\(text)")
  }

  @Test func `an optional part that is missing is said to count`() async throws {
    let text = try await Self.explain(
      caller: "{parts: ['header:X-Account', 'header?:X-Org']}", ["-H", "X-Account: a"])
    #expect(
      text.contains("header?:x-org: missing, which its callers may lack: they are others than those with it"),
      "\(text)")
  }

  @Test func `a key that names nothing is said to`() async throws {
    let caller = "{parts: ['header:X-Account']}"
    let text = try await Self.explain(
      caller: caller, ["-H", "X-Account: a"], key: "undefined", ends: .code(1))
    #expect(text.contains("key_invalid") && text.contains("this one names nothing"), "\(text)")
  }
}
