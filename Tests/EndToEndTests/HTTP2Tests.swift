import Foundation
import TestSupport
import Testing

/// Clients that speak HTTP/2.
struct HTTP2Tests {
  @Test(arguments: StoreKind.allCases)
  func `an order over HTTP 2 runs once, and is replayed to either version`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let order = HTTP2Script.order(
        "k", [["content-type", "application/json"], ["cookie", "a=1"], ["cookie", "b=2"]])
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, order, false], ["data", 1, #"{"amount":1999}"#, true], ["response", 1],
          ["open", 3, order, false], ["data", 3, #"{"amount":1999}"#, true], ["response", 3],
        ])
      #expect(try report[1].status == 201)
      #expect(try report[1].fields["idempotency-status"] == "executed")
      #expect(try report[3].fields["idempotency-status"] == "replayed")
      #expect(try report[3].body == report[1].body)
      #expect(try report[3].ended && report[3].reset == nil)
      expectReplayed(try await rig.order("k"), 201)
      let request = try #require(rig.backend.requests.first)
      #expect(rig.backend.requests.count == 1)
      #expect(request["Host"] == "orders.example")
      #expect(request["Cookie"] == "a=1; b=2")
      #expect(request["Via"] == "2.0 semel")
      #expect(request["X-Forwarded-Host"] == "orders.example")
      #expect(request.text == #"{"amount":1999}"#)
    }
  }

  @Test func `curl uses HTTP 2 with prior knowledge`() async throws {
    try await Rig.run { rig in
      func curl() async throws -> String {
        let process = try ManagedProcess([
          "curl", "--silent", "--show-error", "--include", "--http2-prior-knowledge", "--header",
          "Idempotency-Key: k", "--header", "Authorization: Bearer alice", "--json", "{}",
          "http://127.0.0.1:\(rig.semel.ports.proxy)/v1/orders",
        ])
        #expect(try await process.exit() == .code(0), "\(process.errors)")
        return process.output
      }
      let first = try await curl()
      #expect(first.hasPrefix("HTTP/2 201") && first.contains("idempotency-status: executed"), "\(first)")
      let second = try await curl()
      #expect(second.contains("idempotency-status: replayed"), "\(second)")
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `an offer of Upgrade: h2c is ignored`() async throws {
    try await Rig.run { rig in
      let offer = [
        ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk"),
      ]
      expectExecuted(try await rig.order("k", offer))
      #expect(rig.backend.requests[0]["HTTP2-Settings"] == nil)
      #expect(rig.backend.requests[0]["Upgrade"] == nil)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a thousand streams at once run every key once`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, top: ["limits": "{caller_in_flight: 0}"],
      storeMembers: ["timeout": "10s"],
      route: [
        "key": "{from: ['query:key']}", "caller": "{parts: [address]}", "lease": "30s", "wait_timeout": "30s",
      ])
    try await Rig.run(configuration, slots: Rig.allSlots) { rig in
      let directory = TemporaryDirectory()
      // Each of the ten clients goes through the list twice: all but the first meet a key in flight, or recorded.
      let urls = (0..<300).map { "http://127.0.0.1:\(rig.semel.ports.proxy)/v1/orders?key=k\($0)" }
      try urls.joined(separator: "\n").write(
        toFile: directory.file("urls"), atomically: true, encoding: .utf8)
      try "{}".write(toFile: directory.file("body"), atomically: true, encoding: .utf8)
      let load = try ManagedProcess([
        "h2load", "--requests=6000", "--clients=10", "--max-concurrent-streams=100", "--threads=1",
        "--input-file=\(directory.file("urls"))", "--data=\(directory.file("body"))",
      ])
      #expect(try await load.exit(within: .seconds(100)) == .code(0), "\(load.output)\(load.errors)")
      #expect(load.output.contains("6000 succeeded, 0 failed, 0 errored"), "\(load.output)")
      let targets = rig.backend.requests.map(\.target)
      #expect(targets.count == 300)
      #expect(Set(targets).count == 300)
    }
  }

  @Test func `trailers reach the client, and te is not forwarded`() async throws {
    let configuration = Configuration(route: ["idempotency": "off"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/call") { _ in
        var reply = Reply(200, [("Content-Type", "text/plain")], body: "response", framing: .chunked)
        reply.trailers = [("grpc-status", "0")]
        return reply
      }
      let call = HTTP2Script.order(path: "/v1/call", [["te", "trailers"]])
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, call, false], ["data", 1, "question", false],
          ["trailers", 1, .fields([["checksum", "7"]])], ["response", 1],
        ])
      #expect(try report[1].body == "response")
      #expect(try report[1].trailers == ["grpc-status": "0"])
      #expect(rig.backend.requests.map(\.text) == ["question"])
      #expect(rig.backend.requests[0]["TE"] == nil)
    }
  }

  @Test func `responses to HEAD, without content and after interim ones are framed correctly`() async throws {
    try await Rig.run(Configuration(route: ["idempotency": "optional"])) { rig in
      rig.backend.on("/v1/head") { _ in
        Reply(200, [("Content-Length", "1234")], content: .bytes([]), framing: .bare)
      }
      rig.backend.on("/v1/none") { _ in Reply(204, [], content: .bytes([]), framing: .bare) }
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order(path: "/v1/head", method: "HEAD"), true], ["response", 1],
          ["open", 3, HTTP2Script.order("n", path: "/v1/none"), true], ["response", 3],
          ["open", 5, HTTP2Script.order("e", [["expect", "100-continue"]]), false], ["interim", 5],
          ["data", 5, "{}", true], ["response", 5],
        ])
      #expect(try report[1].fields["content-length"] == "1234")
      #expect(try report[1].length == 0 && report[1].ended)
      #expect(try report[3].status == 204 && report[3].ended)
      #expect(try report[3].fields["content-length"] == nil)
      #expect(try report[5].interim == [100])
      #expect(try report[5].status == 201)
    }
  }

  @Test func `gRPC on a protected route is refused before any claim`() async throws {
    try await Rig.run { rig in
      let call = HTTP2Script.order("k", [["content-type", "application/grpc+proto"], ["te", "trailers"]])
      let report = try await HTTP2Script.run(rig, [["open", 1, call, true], ["response", 1]])
      #expect(try report[1].status == 501)
      #expect(try report[1].body.contains(#""code":"not_implemented""#))
      // The key is as good as new.
      expectExecuted(try await rig.order("k"))
    }
  }

  @Test(arguments: [
    [["connection", "close"]], [["transfer-encoding", "chunked"]], [["Upper", "x"]], [["x", "a\u{1}b"]],
    [["te", "gzip"]], [["host", "other.example"]], [["content-length", "7"]], [["x", " a"]],
  ])
  func `a malformed head is refused, and the connection continues`(fields: [[String]]) async throws {
    try await Rig.run { rig in
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order("k", fields), true], ["response", 1],
          ["open", 3, HTTP2Script.order("k"), true], ["response", 3],
        ])
      #expect(try report[1].status == 400)
      #expect(try report[3].status == 201)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a body of another length than declared is refused, and nothing runs`() async throws {
    try await Rig.run { rig in
      let order = HTTP2Script.order("k", [["content-length", "5"]])
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, order, false], ["data", 1, "1234", true], ["response", 1],
          ["open", 3, order, false], ["data", 3, "123456", true], ["response", 3],
          ["open", 5, order, false], ["data", 5, "12345", true], ["response", 5],
        ])
      #expect(try report[1].status == 400)
      #expect(try report[3].status == 400)
      #expect(try report[5].status == 201)
      #expect(rig.backend.requests.map(\.text) == ["12345"])
    }
  }

  @Test func `after a client's reset the exchange continues, and the retry gets its response`() async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { Reply(body: #"{"order":\#($0.number)}"#, gate: gate) }
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [
          ["open", 1, HTTP2Script.order("k"), true], ["open", 3, HTTP2Script.order("k"), true], ["reset", 1],
          ["note", "reset"], ["response", 3],
        ])
      try await rig.backend.arrived(1)
      try await script.says("reset")
      gate.open()
      let report = try await script.report()
      #expect(try report[3].fields["idempotency-status"] == "replayed")
      #expect(try report[3].body == #"{"order":1}"#)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a response before the body's end ends the stream and the upload`() async throws {
    let configuration = Configuration(route: ["max_request_body": "1KiB"])
    try await Rig.run(configuration) { rig in
      let report = try await HTTP2Script.run(
        rig,
        [
          ["open", 1, HTTP2Script.order("k"), false],
          ["data", 1, .text(String(repeating: "x", count: 2000)), false],
          ["response", 1], ["was_reset", 1], ["open", 3, HTTP2Script.order("k"), true], ["response", 3],
        ])
      #expect(try report[1].status == 413)
      #expect(try report[1].body.contains("request_too_large"))
      #expect(try report[1].reset == 0)
      #expect(try report[3].status == 201)
    }
  }
}
