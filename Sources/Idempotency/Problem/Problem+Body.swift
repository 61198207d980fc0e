import NIOCore

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
    body.writeStaticString("{\"type\":")
    body.writeJSON(type)
    body.writeStaticString(",\"title\":")
    body.writeJSON(title)
    body.writeStaticString(",\"status\":")
    body.writeString(String(status))
    body.writeStaticString(",\"detail\":")
    body.writeJSON(detail)
    body.writeStaticString(",\"code\":")
    body.writeJSON(code.rawValue)
    body.writeStaticString(isRetryable ? ",\"retryable\":true" : ",\"retryable\":false")
    if let originalStatus {
      body.writeStaticString(",\"original_status\":")
      body.writeString(String(originalStatus))
    }
    if let location {
      body.writeStaticString(",\"location\":")
      body.writeJSON(location)
    }
    body.writeStaticString("}\n")
    return body
  }
}

extension ByteBuffer {
  /// Writes a text as a JSON string.
  fileprivate mutating func writeJSON(_ text: String) {
    writeStaticString("\"")
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): writeStaticString("\\\"")
      case UInt8(ascii: "\\"): writeStaticString("\\\\")
      case 0..<0x20:
        writeStaticString("\\u00")
        writeString(byte < 0x10 ? "0" : "1")
        writeString(String(byte & 0xF, radix: 16))
      default: writeInteger(byte)
      }
    }
    writeStaticString("\"")
  }
}
