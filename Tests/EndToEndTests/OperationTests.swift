import Foundation
import TestSupport
import Testing

/// The operator's view: probes, metrics, logs.
struct OperationTests {
  @Test func `the probes report that the process is alive and ready`() async throws {
    try await Rig.run { rig in
      #expect(await rig.semel.status(of: "/livez") == 200)
      #expect(await rig.semel.status(of: "/readyz") == 200)
      #expect(await rig.semel.status(of: "/nowhere") == 404)
    }
  }

  @Test func `each request is one line of the log, without secrets`() async throws {
    try await Rig.run { rig in
      _ = try await rig.order("a-secret-key", body: #"{"card":"4242424242424242"}"#, caller: "Bearer hunter2")
      _ = try await rig.order("a-secret-key", body: #"{"card":"4242424242424242"}"#, caller: "Bearer hunter2")
      _ = try await rig.order(nil)
      _ = try await rig.order(nil, path: "/open?token=hunter3")
      let process = rig.semel.process
      let count = try await process.state.until("four lines of access log") { state -> Int? in
        let lines = (state.output + state.errors).split(separator: UInt8(ascii: "\n")).compactMap {
          try? JSONSerialization.jsonObject(with: Data($0)) as? [String: Any]
        }
        let requests = lines.count { $0["status"] != nil }
        return requests >= 4 ? requests : nil
      }
      #expect(count == 4)
      for secret in ["a-secret-key", "4242424242424242", "hunter2", "hunter3"] {
        #expect(!(process.output + process.errors).contains(secret), "\(secret)")
      }
    }
  }

  @Test func `every line of the log is JSON`() async throws {
    try await Rig.run { rig in
      _ = try await rig.order("k", [("User-Agent", "a\"b\u{1B}[31m")])
      _ = try await rig.order("k", path: #"/v1/a"b"#)
      try await rig.semel.process.state.until("a line") { $0.output.isEmpty && $0.errors.isEmpty ? nil : () }
      rig.semel.terminate()
      try await rig.semel.process.exit()
      let state = rig.semel.process.state.value
      for line in (state.output + state.errors).split(separator: UInt8(ascii: "\n")) {
        #expect(throws: Never.self, "\(String(decoding: line, as: UTF8.self))") {
          try JSONSerialization.jsonObject(with: Data(line))
        }
      }
    }
  }

  @Test func `the log names addresses as a configuration does`() async throws {
    try await Rig.run { rig in
      try await rig.semel.process.line(containing: #""address":"127.0.0.1:\#(rig.semel.ports.proxy)""#)
    }
  }

  @Test func `a Redis that may lose records is warned of`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      try await rig.semel.process.line(containing: "Redis may lose records")
    }
  }
}
