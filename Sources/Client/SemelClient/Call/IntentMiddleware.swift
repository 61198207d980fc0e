public import HTTPTypes
public import Logging

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The body type of an HTTP framework, as far as a middleware needs it: one that can be read once is read once, and each
/// delivery gets a body of the same bytes.
public protocol MiddlewareBody: Sendable {
  /// The whole body. Throws where it has more than `maxBytes`.
  func bytes(upTo maxBytes: Int) async throws -> [UInt8]
  /// A body of these bytes.
  static func body(of bytes: [UInt8]) -> Self
}

/// A call whose outcome nobody knows. The key can be used to send the intent again, and to ask for its outcome.
public struct UnknownOutcome: Error, Hashable, Sendable {
  /// The key of the intent.
  public let key: IntentKey
  /// The server's last word on it, where there was one.
  public let problem: Problem?

  /// An outcome that nobody knows.
  public init(key: IntentKey, problem: Problem?) {
    self.key = key
    self.problem = problem
  }
}

/// A middleware that makes each call of a generated client an intent, in the shape of swift-openapi-runtime's
/// `ClientMiddleware`.
///
/// That package is no dependency of this one. An application that has it makes its `HTTPBody` a ``MiddlewareBody`` by two
/// methods, and its middleware passes `intercept` on to this one. Put it outside all others that repeat requests, and
/// let none of them do so.
///
/// A request with a field of the policy's `keyFields` keeps that key, quoted or not. Any other gets a new one per call:
/// to survive the process, an intent needs a key that the application has stored. Methods that are safe are passed
/// through.
public struct IntentMiddleware<Body: MiddlewareBody>: Sendable {
  /// The next middleware, or the transport.
  public typealias Next = @Sendable (HTTPRequest, Body?, URL) async throws -> (HTTPResponse, Body?)

  private let policy: Policy
  /// The credentials of all calls, which share a refresh.
  private let keeper: CredentialKeeper?
  private let budgets: RetryBudgets
  private let metrics: ClientMetrics
  private let environment: ClientEnvironment
  private let logger: Logger
  private let isNotSent: @Sendable (any Error) -> Bool

  /// - Parameter isNotSent: whether an error of the transport proves that no byte was sent. When in doubt it does not.
  public init(
    policy: Policy = .standard, credentials: (any CredentialSource)? = nil,
    budgets: RetryBudgets = RetryBudgets(),
    metrics: ClientMetrics = ClientMetrics(), environment: ClientEnvironment = .system,
    logger: Logger = Logger(label: "semel.client"),
    isNotSent: @escaping @Sendable (any Error) -> Bool = { _ in false }
  ) {
    self.policy = policy
    keeper = credentials.map { CredentialKeeper($0, clock: environment.clock) }
    self.budgets = budgets
    self.metrics = metrics
    self.environment = environment
    self.logger = logger
    self.isNotSent = isNotSent
  }

  /// Sends a request until it has its outcome. Throws ``CallError`` where nothing was carried out and there is no
  /// response to show, and ``UnknownOutcome`` where nobody knows.
  public func intercept(
    _ request: HTTPRequest, body: Body?, baseURL: URL, operationID: String, next: @escaping Next
  ) async throws -> (HTTPResponse, Body?) {
    guard ![.get, .head, .options, .trace].contains(request.method) else {
      return try await next(request, body, baseURL)
    }
    let intent = try await intent(request, body)
    guard let origin = Origin("\(baseURL.scheme ?? "http")://\(baseURL.authority)") else {
      throw CallError.invalidRequest("\(baseURL) has no origin.")
    }
    let transport = NextTransport<Body>(
      request: request, keyFields: policy.keyFields, baseURL: baseURL, next: next, isNotSent: isNotSent)
    let courier = Courier(
      origin: origin, transport: transport, policy: policy, keeper: keeper, environment: environment)
    let client = IntentClient(courier, budgets: budgets, metrics: metrics, logger: logger)
    do {
      switch try await client.send(intent) {
      case .completed(let response, _), .rejected(let response): return Self.parts(response)
      case .unknown(let problem): throw UnknownOutcome(key: intent.key, problem: problem)
      }
    } catch CallError.notExecuted(let response?) {
      return Self.parts(response)
    } catch CallError.budgetExhausted(let response?) {
      return Self.parts(response)
    }
  }

  private func intent(_ request: HTTPRequest, _ body: Body?) async throws -> Intent {
    let given = try policy.keyFields.lazy.compactMap { request.headerFields[$0] }.first.map(Self.key)
    let bytes = try await body?.bytes(upTo: policy.maxRequestBody)
    let durable = IntentRequest(
      method: request.method, path: request.path ?? "/", fields: request.headerFields.withoutCredentials,
      body: bytes.map { .bytes($0) } ?? .none)
    return Intent(
      key: given ?? IntentKey(at: environment.now(), random: environment.random), request: durable)
  }

  /// The key of a field, bare or as a string of structured fields (RFC 8941). A new key in the place of one that is
  /// neither would run the operation again.
  private static func key(_ field: String) throws -> IntentKey {
    let isQuoted = field.count > 2 && field.hasPrefix("\"") && field.hasSuffix("\"")
    guard let key = IntentKey(isQuoted ? String(field.dropFirst().dropLast()) : field) else {
      throw CallError.invalidRequest("\(field) cannot be the key of an intent.")
    }
    return key
  }

  private static func parts(_ response: Response) -> (HTTPResponse, Body?) {
    (response.head, response.body.isEmpty ? nil : Body.body(of: response.body))
  }
}

/// The rest of a chain of middlewares as a transport.
private struct NextTransport<Body: MiddlewareBody>: Transport {
  let request: HTTPRequest
  let keyFields: [HTTPField.Name]
  let baseURL: URL
  let next: IntentMiddleware<Body>.Next
  let isNotSent: @Sendable (any Error) -> Bool

  func send(
    _ delivery: HTTPRequest, body: [UInt8], timeout: Duration, maxResponseBody: Int
  ) async throws(TransportError) -> Response {
    var outgoing = delivery
    // The chain completes the request by its base's own. It sees the key as it was written, and the credentials that the
    // call came with.
    outgoing.scheme = request.scheme
    outgoing.authority = request.authority
    for name in keyFields {
      outgoing.headerFields[name] = request.headerFields[name] ?? delivery.headerFields[name]
    }
    for name in HTTPField.Name.credentials where outgoing.headerFields[name] == nil {
      outgoing.headerFields[name] = request.headerFields[name]
    }
    do {
      let (head, body) = try await next(outgoing, body.isEmpty ? nil : Body.body(of: body), baseURL)
      return Response(head, body: try await body?.bytes(upTo: maxResponseBody) ?? [])
    } catch {
      throw isNotSent(error) ? .notSent("\(error)") : .lost("\(error)")
    }
  }
}

extension HTTPFields {
  fileprivate var withoutCredentials: HTTPFields {
    var fields = self
    for name in HTTPField.Name.credentials { fields[name] = nil }
    return fields
  }
}

extension URL {
  /// The host with the port, if there is one.
  fileprivate var authority: String {
    let host = host() ?? ""
    let text = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    return port.map { "\(text):\($0)" } ?? text
  }
}
