import TestSupport
import Testing

/// gRPC's own client and server, and Semel between them.
struct GRPCTests {
  struct Report: Decodable {
    let echo: [Value]?
    let large: [Value]?
    let count: [Int]?
    let sum: Int?
    let chat: [String]?
    let chatEnd: [String]?
    /// The reply before the cancellation, and the status after it.
    let cancel: [String]?
    let deadline: [String?]?
    let leave: [LeavePart]?
    let fail: [String?]

    enum CodingKeys: String, CodingKey {
      case echo, large, count, sum, chat, cancel, deadline, leave, fail
      case chatEnd = "chat_end"
    }
  }

  /// A flag or a text.
  enum Value: Decodable, Equatable {
    case flag(Bool)
    case text(String)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      self = try (try? container.decode(Bool.self)).map(Value.flag) ?? .text(container.decode(String.self))
    }
  }

  /// The messages that came, and their end.
  typealias LeavePart = [String?]

  /// Makes calls of every kind; with `single`, one call with that key alone, or without a key if it is empty.
  ///
  /// - Parameter body: What is to be seen of the calls once they have ended.
  private func call(
    _ service: String, single key: String? = nil, idempotency: String = "optional", isSecure: Bool = false,
    _ body: @escaping @Sendable (Rig, ManagedProcess) async throws -> Void = { _, _ in }
  ) async throws -> Report {
    let port = FreePort.find()
    let certificates = try await Certificates()
    let pair = try await certificates.server()
    let server = try await Python.serve(
      "grpc_server", ["\(port)"] + (isSecure ? [pair.certificate, pair.key] : []))
    var configuration = Configuration(
      upstream: ["url": "'http://127.0.0.1:\(port)'", "http2": "prior_knowledge"],
      route: ["match": "{path: '/test.Protected/**'}", "idempotency": idempotency])
    let listener = FreePort.find()
    if isSecure {
      configuration.top["listen"] =
        "[{address: '127.0.0.1:\(listener)', tls: {certificate: \(pair.certificate), key: \(pair.key)}}]"
      configuration.upstream = [
        "url": "'https://localhost:\(port)'", "http2": "auto", "tls": "{ca: \(certificates.authority)}",
      ]
    }
    let report = Watched<Report?>(nil)
    try await Rig.run(configuration) { rig in
      let place = isSecure ? "\(listener):\(certificates.authority)" : "\(rig.semel.ports.proxy)"
      let result: Report = try await Python.run("grpc_calls", [place, service] + (key.map { [$0] } ?? []))
      report.withValue { $0 = result }
      try await body(rig, server)
    }
    withExtendedLifetime(server) {}
    return try #require(report.value)
  }

  @Test(arguments: [("test.Test", false), ("test.Test", true), ("test.Protected", false)])
  func `calls without a key pass where none is required, streams both ways`(
    service: String, isSecure: Bool
  ) async throws {
    let report = try await call(service, isSecure: isSecure) { rig, server in
      // The server learns that its clients have given up.
      for name in ["Hold", "Sleep"] { try await server.line(containing: "ended \(name)") }
      try await rig.semel.counter("semel_in_flight_requests", becomes: 0)
    }
    #expect(report.echo == [.flag(true), .text("1"), .text("2")])
    #expect(report.large == [.flag(true), .text("1"), .text("2")])
    #expect(report.count == Array(0..<100))
    #expect(report.sum == 4950)
    #expect(report.chat == ["ONE", "TWO", "THREE"])
    #expect(report.chatEnd == [])
    #expect(report.cancel == ["ONE", "CANCELLED"])
    #expect(report.deadline?.first == "DEADLINE_EXCEEDED")
    #expect(report.fail == ["FAILED_PRECONDITION", "not today", "because"])
    #expect(report.leave?.first == ["one"])
    #expect(report.leave?.last == ["RESOURCE_EXHAUSTED", "enough", nil])
  }

  @Test(arguments: [("k1", "optional"), ("k1", "required"), ("", "required")])
  func `a call that would need a record is refused`(key: String, idempotency: String) async throws {
    let report = try await call("test.Protected", single: key, idempotency: idempotency)
    #expect(report.fail[1]?.contains("501") == true, "\(report.fail)")
  }
}
