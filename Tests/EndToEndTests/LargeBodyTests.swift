import TestSupport
import Testing

/// Large bodies. Smaller bodies do not wait for them to be read.
struct LargeBodyTests {
  private static let type = [("Content-Type", "application/x-www-form-urlencoded")]
  private static let count = 10

  /// Names of a byte, of which many are equal: the costliest to put in order.
  private static func form(_ size: Int) -> String {
    var body = ""
    var number = 1
    while body.utf8.count < size - 2 {
      number = number &* 48271 % 0x7FFF_FFFF
      body += String(Unicode.Scalar(UInt8(0x61 + number % 26))) + "&"
    }
    return body
  }

  /// Sends requests with this body on one connection, one after the other, until all large ones have ended, and
  /// returns their number.
  private static func deliver(_ body: String, _ key: String, _ rig: Rig, beside ended: Watched<Int>)
    async throws
    -> Int
  {
    let connection = try await RawClient(port: rig.semel.ports.proxy)
    var number = 0
    while ended.value < count {
      try await connection.send(Rig.orderText("\(key)-\(number)", body: body))
      expectExecuted(try await connection.response())
      number += 1
    }
    return number
  }

  @Test func `smaller bodies wait for none of ten costly ones that end together`() async throws {
    let limit = 4 << 20
    // Alone: it loads the machine.
    let configuration = Configuration(top: ["workers": "1"], route: ["max_request_body": "4MiB"])
    try await Rig.run(configuration, slots: Rig.allSlots) { rig in
      // As large as the limit allows, or as a build without optimisation reads in reasonable time, but too
      // large for the threads of small bodies.
      let size = 64 << 10
      // The quickest of several: one may wait for the machine.
      var probe = Duration.seconds(1)
      for number in 0..<5 {
        probe = try await min(
          probe, duration { expectExecuted(try await send(rig, "probe-\(number)", Self.form(size))) })
      }
      let bytes = Array(Self.form(min(limit, size * max(2, Int(Duration.milliseconds(400) / probe)))).utf8)
      var connections: [RawClient] = []
      for number in 0..<Self.count {
        connections.append(try await sendAllButTheLast(of: bytes, rig, "large-\(number)"))
      }
      // All of them have been read but for their last bytes.
      expectExecuted(try await rig.order("before"))
      for connection in connections { try await connection.send(bytes.suffix(1)) }
      let ended = Watched(0)
      async let small = Self.deliver("{}", "small", rig, beside: ended)
      // Too large for the event loop.
      let text = #"{"text":"\#(String(repeating: "x", count: 20 << 10))"}"#
      async let medium = Self.deliver(text, "medium", rig, beside: ended)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for connection in connections {
          group.addTask {
            expectExecuted(try await connection.response())
            ended.withValue { $0 += 1 }
          }
        }
        try await group.waitForAll()
      }
      // Of requests that each wait for one large body to be read, there is one for each large body, and one more.
      for number in try await [small, medium] {
        #expect(number > Self.count + 1, "beside \(bytes.count) bytes each")
      }
    }
  }

  private func duration(_ body: () async throws -> Void) async throws -> Duration {
    let start = ContinuousClock.now
    try await body()
    return ContinuousClock.now - start
  }

  private static func fields(_ key: String) -> [(String, String)] {
    type + Rig.fields(key: key).filter { $0.0 != "Content-Type" }
  }

  /// The connection of a request of which one byte is not yet sent.
  private func sendAllButTheLast(of bytes: [UInt8], _ rig: Rig, _ key: String) async throws -> RawClient {
    let connection = try await RawClient(port: rig.semel.ports.proxy)
    let fields = Self.fields(key) + [("Content-Length", "\(bytes.count)")]
    try await connection.send(HTTPClient.request("POST", "/v1/orders", fields))
    try await connection.send(bytes.dropLast())
    return connection
  }

  private func send(_ rig: Rig, _ key: String, _ body: String) async throws -> ReceivedResponse {
    try await rig.semel.client.send("POST", "/v1/orders", Self.fields(key), body: body)
  }

  @Test func `a large body has the same fingerprint whatever its spelling`() async throws {
    try await Rig.run { rig in
      let value = String(repeating: "x", count: 100 << 10)
      let first = try await rig.order("k", body: #"{"b":"\#(value)","a":1}"#)
      expectExecuted(first)
      expectReplayed(try await rig.order("k", body: #"{ "a": 1, "\u0062": "\#(value)" }"#), of: first)
      let other = try await rig.order("k", body: #"{"a":2,"b":"\#(value)"}"#)
      expectRefused(other, 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `the key in a large body is found, and a missing one is refused`() async throws {
    try await Rig.run(Configuration(route: ["key": "{from: ['json:/order/key']}"])) { rig in
      let value = String(repeating: "x", count: 100 << 10)
      func body(_ order: String) -> String { #"{"value":"\#(value)","order":\#(order)}"# }
      let first = try await rig.order(nil, body: body(#"{"key":"a"}"#))
      expectExecuted(first)
      expectReplayed(try await rig.order(nil, body: body(#"{"key":"a"}"#)), of: first)
      expectExecuted(try await rig.order(nil, body: body(#"{"key":"b"}"#)))
      expectRefused(try await rig.order(nil, body: body("{}")), 400, "key_missing", retryable: false)
      expectRefused(
        try await rig.order(nil, body: body(#"{"key":true}"#)), 400, "key_invalid", retryable: false)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `a record with another recipe is compared by that recipe, also for a large body`() async throws {
    let configuration = Configuration(route: ["fingerprint": "{body: raw}"])
    try await Rig.run(configuration) { rig in
      let body = #"{"a":"\#(String(repeating: "x", count: 100 << 10))"}"#
      let first = try await rig.order("k", body: body)
      expectExecuted(first)
      var changed = configuration
      changed.route = [:]
      try await rig.semel.reload(rig.text(of: changed))
      expectReplayed(try await rig.order("k", body: body), of: first)
      expectRefused(try await rig.order("k", body: body + " "), 409, "payload_mismatch", retryable: false)
    }
  }
}
