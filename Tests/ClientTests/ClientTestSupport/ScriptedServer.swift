public import HTTPTypes
public import SemelClient
import Synchronization

/// A transport whose ends are written down beforehand, and that keeps what it was sent.
public final class ScriptedServer: Transport {
  public typealias Handler = @Sendable (HTTPRequest, [UInt8]) async throws(TransportError) -> Response

  private struct State {
    var requests: [HTTPRequest] = []
    var bodies: [[UInt8]] = []
  }

  private let state = Mutex(State())
  private let handler: Handler

  public init(_ handler: @escaping Handler) {
    self.handler = handler
  }

  /// A server that ends the deliveries as listed, one after the other, and the last one for ever.
  public convenience init(_ ends: [Result<Response, TransportError>]) {
    let next = Mutex(0)
    self.init { (_, _) async throws(TransportError) in
      let index = next.withLock { index in
        defer { index += 1 }
        return index
      }
      return try ends[min(index, ends.count - 1)].get()
    }
  }

  public var requests: [HTTPRequest] { state.withLock { $0.requests } }
  public var bodies: [[UInt8]] { state.withLock { $0.bodies } }

  /// The keys of the deliveries, in their order.
  public var keys: [String] { requests.map { $0.headerFields[.idempotencyKey] ?? "" } }

  public func send(
    _ request: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    state.withLock { state in
      state.requests.append(request)
      state.bodies.append(body)
    }
    return try await handler(request, body)
  }
}

extension Response {
  /// A response with a status and fields by their names.
  public init(_ status: Int, _ fields: [String: String] = [:], _ body: String = "") {
    var headerFields = HTTPFields()
    for (name, value) in fields {
      guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is no name of a field.") }
      headerFields[name] = value
    }
    self.init(status: .init(code: status), fields: headerFields, body: [UInt8](body.utf8))
  }

  /// A refusal by Semel.
  public static func problem(
    _ status: Int, _ code: String, isRetryable: Bool, _ fields: [String: String] = [:], more: String = ""
  ) -> Response {
    let document = #"{"code":"\#(code)","retryable":\#(isRetryable),"status":\#(status)\#(more)}"#
    let own = ["Content-Type": "application/problem+json", "X-Should-Retry": "\(isRetryable)"]
    return Response(status, own.merging(fields) { $1 }, document)
  }

  /// A first run's outcome, as Semel marks it.
  public static func executed(_ status: Int, _ body: String = "") -> Response {
    Response(status, ["Idempotency-Status": "executed"], body)
  }

  /// A replay, as Semel marks it.
  public static func replayed(_ status: Int, _ body: String = "") -> Response {
    Response(status, ["Idempotency-Status": "replayed", "Idempotent-Replayed": "true"], body)
  }
}
