import NIOCore

extension Problem {
  /// The fields that go with it, besides the framing: what it is, that it is not to be kept, where it is
  /// described, and whether to try again.
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

  /// The JSON document (RFC 9457), its members always in this order.
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
  /// Writes a JSON string.
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
