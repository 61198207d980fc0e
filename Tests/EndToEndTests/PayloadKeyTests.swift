import Foundation
import TestSupport
import Testing

/// `semel explain` of a payload that is the key: the fingerprint that it shows is the one by which the record is found.
struct PayloadKeyTests {
  private struct Shown: Equatable {
    let key, fingerprint, record: String
  }

  private func explain(_ body: String, method: String = "POST", _ fields: [String] = []) async throws -> Shown
  {
    let directory = TemporaryDirectory()
    try """
    upstreams: {orders: {url: "http://127.0.0.1:9000"}}
    routes: [{name: orders, match: {methods: [POST]}, key: {from: [payload]}, caller: {shared: true},
              method_override: true}]
    """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let process = try ManagedProcess(
      [SemelProcess.binary, "explain", directory.file("semel.yaml"), method, "http://orders.example/a"]
        + ["-H", "Content-Type: application/json", "-d", body] + fields.flatMap { ["-H", $0] })
    #expect(try await process.exit() == .code(0), "\(process.output)\(process.errors)")
    let lines = process.output.split(separator: "\n").map(String.init)
    func line(_ label: String) throws -> String {
      try #require(lines.first { $0.hasPrefix(label) }, "\(process.output)")
    }
    return Shown(
      key: try line("key "), fingerprint: try line("fingerprint "), record: try line("record "))
  }

  @Test func `the key is shown by its own recipe, of which each spelling of a number has one`() async throws {
    let shown = try await explain(#"{"a":1,"b":2}"#)
    let digest = /key +payload: the payload's fingerprint [0-9a-f]{16}… by recipe 1;auto/
    #expect(shown.key.wholeMatch(of: digest) != nil, "\(shown.key)")
    #expect(try await explain(#"{ "b": 2, "\u0061": 1 }"#) == shown)
    let other = try await explain(#"{"a":1.0,"b":2}"#)
    #expect(other.fingerprint == shown.fingerprint)
    #expect(other.key != shown.key && other.record != shown.record)
  }

  @Test func `the key of an overridden method is that of the record`() async throws {
    let plain = try await explain("{}")
    let overriding = try await explain("{}", method: "GET", ["X-HTTP-Method-Override: POST"])
    #expect(overriding == plain)
  }
}
