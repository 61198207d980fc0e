import Foundation
import TestSupport

/// A client of HTTP/2 that does what a test says, frame by frame where it must: a script of `Clients`.
struct HTTP2Script {
  /// The words of a step.
  enum Argument: Encodable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, Sendable
  {
    case text(String)
    case number(Int)
    case flag(Bool)
    case fields([[String]])
    case list([Self])

    init(stringLiteral value: String) { self = .text(value) }
    init(integerLiteral value: Int) { self = .number(value) }
    init(booleanLiteral value: Bool) { self = .flag(value) }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .text(let text): try container.encode(text)
      case .number(let number): try container.encode(number)
      case .flag(let flag): try container.encode(flag)
      case .fields(let fields): try container.encode(fields)
      case .list(let list): try container.encode(list)
      }
    }
  }

  /// The fate of one stream.
  struct Stream: Decodable {
    var status: Int
    var fields: [String: String]
    var interim: [Int]
    /// Of the body, in bytes.
    var length: Int
    /// The beginning of the body.
    var body: String
    var trailers: [String: String]
    /// The code of RST_STREAM.
    var reset: Int?
    var ended: Bool
    /// The number of bytes of a large upload that went out.
    var uploaded: Int?
  }

  struct GoAway: Decodable, Equatable {
    var code: Int
    var last: Int
  }

  /// The client's findings.
  struct Report: Decodable {
    var streams: [String: Stream]
    var goaways: [GoAway]
    /// Whether the server has closed the connection.
    var closed: Bool
    var settings: [String: Int]

    subscript(stream: Int) -> Stream {
      get throws {
        guard let stream = streams[String(stream)] else { throw TestFailure("no stream \(stream)") }
        return stream
      }
    }
  }

  private let process: ManagedProcess

  /// Starts it.
  ///
  /// - Parameters:
  ///   - authority: a file with the CA's certificate: then it speaks TLS, without ALPN.
  init(port: Int, authority: String? = nil, _ steps: [[Argument]]) throws {
    let place = "127.0.0.1:\(port)" + (authority.map { ":\($0)" } ?? "")
    let text = String(decoding: try JSONEncoder().encode(steps), as: UTF8.self)
    process = try Python.start("http2_script", [place, text])
  }

  /// Waits until it has come to a `note`.
  func says(_ text: String) async throws { try await process.line(containing: text, within: .seconds(50)) }

  /// Waits for its end.
  func report() async throws -> Report {
    let exit = try await process.exit(within: .seconds(100))
    guard exit == .code(0), let last = process.output.split(separator: "\n").last else {
      throw TestFailure("the script ended with \(exit):\n\(process.output)\(process.errors)")
    }
    return try JSONDecoder().decode(Report.self, from: Data(last.utf8))
  }

  /// Ends it at once, with its connection.
  func kill() async throws { try await process.kill() }

  /// The fields of an order: `POST /v1/orders`, keyed where there is a key.
  static func order(
    _ key: String? = nil, path: String = "/v1/orders", method: String = "POST", _ more: [[String]] = []
  ) -> Argument {
    .fields(
      [
        [":method", method], [":scheme", "http"], [":path", path], [":authority", "orders.example"],
        ["authorization", "Bearer alice"],
      ] + (key.map { [["idempotency-key", $0]] } ?? []) + more)
  }

  /// Connects, does the steps and gives the report.
  static func run(_ rig: Rig, _ steps: [[Argument]]) async throws -> Report {
    try await HTTP2Script(port: rig.semel.ports.proxy, steps).report()
  }
}
