/// The backend's treatment of a request.
package struct Reply: Sendable {
  /// The framing of the response.
  package enum Framing: Sendable {
    case length, chunked
    /// With neither: the connection's end is the response's.
    case close
    /// With neither, and the connection stays open: for responses that have no content.
    case bare
  }

  package enum Content: Sendable {
    case bytes([UInt8])
    /// So many bytes `x`, made while they are sent.
    case filler(Int)

    var count: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .filler(let count): count
      }
    }
  }

  /// The point at which the backend stops.
  package enum Ending: Sendable, Equatable {
    case whole
    /// The connection is closed without a byte of a response.
    case closedWithoutResponse
    /// The connection is closed, in good order, after so many bytes of the body.
    case cut(after: Int)
    /// The connection is reset after so many bytes of the body.
    case reset(after: Int)
  }

  package var status: Int
  package var fields: [(String, String)]
  package var content: Content
  package var framing: Framing
  package var ending: Ending
  /// Sent before the response: interim responses, or what is none.
  package var interim = ""
  package var trailers: [(String, String)] = []
  /// Nothing is sent before this is open.
  package var gate: Gate?
  /// Nothing is sent before this is over.
  package var delay: Duration = .zero

  package init(
    _ status: Int = 201, _ fields: [(String, String)] = [("Content-Type", "application/json")],
    body: String = "",
    framing: Framing = .length, ending: Ending = .whole, gate: Gate? = nil, delay: Duration = .zero,
    before interim: String = ""
  ) {
    self.init(status, fields, content: .bytes(Array(body.utf8)), framing: framing, ending: ending)
    self.gate = gate
    self.delay = delay
    self.interim = interim
  }

  package init(
    _ status: Int, _ fields: [(String, String)], content: Content, framing: Framing = .length,
    ending: Ending = .whole
  ) {
    self.status = status
    self.fields = fields
    self.content = content
    self.framing = framing
    self.ending = ending
  }

  /// A response that never comes: the connection is closed once the request was read.
  package static var unanswered: Reply { Reply(ending: .closedWithoutResponse) }

  /// The status line and the field lines.
  package var head: String {
    var lines = ["HTTP/1.1 \(status) Whatever"]
    lines += fields.map { "\($0.0): \($0.1)" }
    switch framing {
    case .length: lines.append("Content-Length: \(content.count)")
    case .chunked: lines.append("Transfer-Encoding: chunked")
    case .close, .bare: break
    }
    return interim + lines.joined(separator: "\r\n") + "\r\n\r\n"
  }
}
