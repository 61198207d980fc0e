import NIOCore
import Wire

extension Problem {
  /// The fields of the problem's response besides its framing: the content type, the prohibition to cache, the link to
  /// the description, and the advice on retries.
  public var fields: [(name: StaticString, value: String)] {
    var fields: [(name: StaticString, value: String)] = [
      ("Content-Type", "application/problem+json"),
      ("Cache-Control", "no-store"),
      ("Link", "<\(type)>; rel=\"describedby\""),
      ("X-Should-Retry", isRetryable ? "true" : "false"),
    ]
    if let retryAfter { fields.append(("Retry-After", String(retryAfter))) }
    if let challenge { fields.append(("WWW-Authenticate", challenge)) }
    return fields
  }

  /// The JSON document (RFC 9457). Its members are always in this order.
  public func body() -> ByteBuffer {
    var body = ByteBufferAllocator().buffer(capacity: 512)
    body.writeLiteral("{\"type\":")
    body.writeJSON(type)
    body.writeLiteral(",\"title\":")
    body.writeJSON(title)
    body.writeLiteral(",\"status\":")
    body.writeString(String(status))
    body.writeLiteral(",\"detail\":")
    body.writeJSON(detail)
    body.writeLiteral(",\"code\":")
    body.writeJSON(code.rawValue)
    body.writeLiteral(isRetryable ? ",\"retryable\":true" : ",\"retryable\":false")
    if let originalStatus {
      body.writeLiteral(",\"original_status\":")
      body.writeString(String(originalStatus))
    }
    if let location {
      body.writeLiteral(",\"location\":")
      body.writeJSON(location)
    }
    body.writeLiteral("}\n")
    return body
  }
}

extension ByteBuffer {
  fileprivate mutating func writeJSON(_ text: String) {
    var bytes: [UInt8] = []
    bytes.appendJSONString(text)
    writeBytes(bytes)
  }
}
