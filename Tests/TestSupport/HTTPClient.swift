/// A client that makes one connection a request.
package struct HTTPClient: Sendable {
  package let port: Int
  /// The `Host` of requests that bring none.
  package let host: String

  package init(port: Int, host: String = "orders.example") {
    self.port = port
    self.host = host
  }

  /// Sends a request and waits for its response, interim ones (1xx) passed over.
  ///
  /// A `Host` is added where there is none, and a `Content-Length` where there is a body and no framing.
  package func send(
    _ method: String = "GET", _ target: String, _ fields: [(String, String)] = [], body: String? = nil,
    within span: Duration = .seconds(20)
  ) async throws -> ReceivedResponse {
    let connection = try await RawClient(port: port)
    try await connection.send(Self.request(method, target, fields, host: host, body: body))
    while true {
      let response = try await connection.response(to: method, within: span)
      if response.status >= 200 { return response }
    }
  }

  /// The bytes of such a request.
  package static func request(
    _ method: String, _ target: String, _ fields: [(String, String)] = [], host: String = "orders.example",
    body: String? = nil
  ) -> String {
    var lines = ["\(method) \(target) HTTP/1.1"]
    let names = Set(fields.map { $0.0.lowercased() })
    if !names.contains("host") { lines.append("Host: \(host)") }
    lines += fields.map { "\($0.0): \($0.1)" }
    if let body, names.isDisjoint(with: ["content-length", "transfer-encoding"]) {
      lines.append("Content-Length: \(body.utf8.count)")
    }
    return lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
  }
}
