import TestSupport
import Testing

/// Clients that send nothing more and read on (a FIN of TCP): what they asked whole is answered, and what they left
/// unfinished ends at once, not after `body_timeout`.
struct HalfCloseTests {
  @Test func `a whole upload of HTTP 1 arrives, even behind what is not taken yet`() async throws {
    let backend = try RawServer(receiveBuffer: 4096) { connection in
      while true {
        try connection.readRequest()
        try connection.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
      }
    }
    let configuration = Configuration(upstream: ["url": "'http://127.0.0.1:\(backend.port)'"])
    try await Rig.run(configuration) { rig in
      // More than the kernel holds, so that the backend's pace is Semel's.
      for size in stride(from: 6_000_000, to: 6_500_000, by: 50_000) {
        let client = try await RawClient(port: rig.semel.ports.proxy)
        let body = String(size, radix: 16) + "\r\n" + String(repeating: "x", count: size) + "\r\n0\r\n\r\n"
        try await client.send(
          HTTPClient.request("POST", "/open", [("Transfer-Encoding", "chunked")], body: body))
        try await client.closeSending()
        #expect(try await client.answer().status == 201, "\(size)")
      }
    }
  }

  @Test func `an unfinished request of HTTP 1 ends at once`() async throws {
    try await Rig.run { rig in
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k").dropLast(1).description)
      try await client.closeSending()
      expectRefused(try await client.answer(), 400, "bad_request", retryable: false)
      expectExecuted(try await rig.order("k", body: "{}"))
      #expect(rig.backend.requests.count == 1)
    }
  }
}
