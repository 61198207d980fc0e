import TestSupport
import Testing

/// The memory of connections of HTTP/2, of which no frame and no body may keep more than its own bytes.
struct HTTP2MemoryTests {
  private static let maxGrowth = BodyMemoryTests.maxGrowth
  private static let oneWorker = Configuration(top: ["workers": "1"])

  @Test func `what a client has sent is not kept, wherever its packets end`() async throws {
    try await Rig.run(Self.oneWorker) { rig in
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [["padded", 1, 50], ["note", "begun"], ["padded", 101, 850], ["note", "sent"], ["pause", 60]])
      try await script.says("begun")
      let before = try rig.semel.memory("VmRSS")
      try await script.says("sent")
      let growth = try rig.semel.memory("VmRSS") - before
      #expect(growth < Self.maxGrowth, "\(growth) KiB for 40 MiB")
      try await script.kill()
    }
  }

  @Test func `a byte of a body holds no more than itself`() async throws {
    try await Rig.run(Self.oneWorker) { rig in
      // The process has served a client before.
      let warm = try await HTTP2Script.run(rig, [["padded", 1, 20]])
      #expect(warm.goaways.isEmpty)
      let before = try rig.semel.memory("VmRSS")
      let streams = (0..<98).map {
        HTTP2Script.Argument.list([.number(2 * $0 + 1), HTTP2Script.order("k\($0)")])
      }
      let script = try HTTP2Script(
        port: rig.semel.ports.proxy,
        [["crumbs", .list(streams)], ["ping"], ["note", "read"], ["pause", 60]])
      try await script.says("read")
      let growth = try rig.semel.memory("VmRSS") - before
      #expect(growth < Self.maxGrowth, "\(growth) KiB for 98 bytes")
      try await rig.semel.counter("semel_in_flight_requests", becomes: 98)
      try await script.kill()
    }
  }

  @Test(arguments: [true, false])
  func `what a backend has sent is not kept, wherever its packets end`(isSecure: Bool) async throws {
    try await HTTP2Backend.run(isSecure: isSecure, Self.oneWorker) { rig, _ in
      expectExecuted(try await rig.order("k", path: "/v1/order"))
      let before = try rig.semel.memory("VmRSS")
      let response = try await rig.order("crumbs", path: "/v1/crumbs")
      expectExecuted(response, 200)
      #expect(response.text == String(repeating: "x", count: 640))
      // The connection is kept, and with it all that its codec holds.
      let growth = try rig.semel.memory("VmRSS") - before
      #expect(growth < Self.maxGrowth, "\(growth) KiB for 40 MiB")
    }
  }
}
