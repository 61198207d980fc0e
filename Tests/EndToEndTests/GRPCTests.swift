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
    let leave: [LeavePart]?
    let fail: [String?]

    enum CodingKeys: String, CodingKey {
      case echo, large, count, sum, chat, leave, fail
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
  private func call(
    _ service: String, single key: String? = nil, idempotency: String = "optional"
  ) async throws -> Report {
    let port = FreePort.find()
    let server = try await Python.serve("grpc_server", ["\(port)"])
    let configuration = Configuration(
      upstream: ["url": "'http://127.0.0.1:\(port)'", "http2": "prior_knowledge"],
      route: ["match": "{path: '/test.Protected/**'}", "idempotency": idempotency])
    let report = Watched<Report?>(nil)
    try await Rig.run(configuration) { rig in
      let result: Report = try await Python.run(
        "grpc_calls", ["\(rig.semel.ports.proxy)", service] + (key.map { [$0] } ?? []))
      report.withValue { $0 = result }
    }
    withExtendedLifetime(server) {}
    return try #require(report.value)
  }

  @Test(arguments: ["test.Test", "test.Protected"])
  func `calls without a key pass where none is required, streams both ways`(service: String) async throws {
    let report = try await call(service)
    #expect(report.echo == [.flag(true), .text("1"), .text("2")])
    #expect(report.large == [.flag(true), .text("1"), .text("2")])
    #expect(report.count == Array(0..<100))
    #expect(report.sum == 4950)
    #expect(report.chat == ["ONE", "TWO", "THREE"])
    #expect(report.chatEnd == [])
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
