public import HTTPTypes

/// A complete response: its head and its body.
public struct Response: Hashable, Sendable, Codable {
  /// The status and the fields.
  public var head: HTTPResponse
  /// The whole body, without any transfer coding.
  public var body: [UInt8]

  /// A response of a head and a body.
  public init(_ head: HTTPResponse, body: [UInt8] = []) {
    self.head = head
    self.body = body
  }

  /// A response of a status, fields and a body.
  public init(status: HTTPResponse.Status, fields: HTTPFields = [:], body: [UInt8] = []) {
    self.init(HTTPResponse(status: status, headerFields: fields), body: body)
  }

  /// The status of the head.
  public var status: HTTPResponse.Status { head.status }
  /// The fields of the head.
  public var fields: HTTPFields { head.headerFields }

  /// The problem document in the body (RFC 9457), where there is one.
  public var problem: Problem? { Problem(self) }
}

extension HTTPField.Name {
  /// A field's name that is known to be valid.
  package static func known(_ name: String) -> Self {
    guard let name = Self(name) else { preconditionFailure("\(name) is no name of a field.") }
    return name
  }

  /// `Idempotency-Key`, the field of draft-ietf-httpapi-idempotency-key-header.
  public static let idempotencyKey = known("Idempotency-Key")
  /// `X-Client-Request-ID`, under which several APIs take the key, and echo it with the objects that they create.
  public static let clientRequestID = known("X-Client-Request-ID")

  /// The fields that hold credentials.
  package static let credentials: [Self] = [.authorization, .proxyAuthorization, .cookie]

  package static let idempotencyStatus = known("Idempotency-Status")
  package static let idempotencyExpires = known("Idempotency-Expires")
  package static let idempotentReplayed = known("Idempotent-Replayed")
  package static let shouldRetry = known("X-Should-Retry")
  package static let stripeShouldRetry = known("Stripe-Should-Retry")
}
