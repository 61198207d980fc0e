import NIOCore

/// A message of HTTP/1.1 as the world's clients and backends read it.
struct HTTPMessage {
  var start: String
  /// By their names in lower case.
  var fields: [String: String]
  var body: [UInt8]

  /// The status of a response.
  var status: Int { Int(path) ?? 0 }
  /// The method of a request.
  var method: String { String(start.prefix { $0 != " " }) }
  /// The path of a request: the second word.
  var path: String {
    let words = start.utf8.split(separator: UInt8(ascii: " "), maxSplits: 2)
    return words.count > 1 ? String(Substring(words[1])) : ""
  }

  var text: String { String(decoding: body, as: UTF8.self) }
}

/// Reads messages as their bytes arrive. It trusts their form: what Semel sends is judged by others.
struct HTTPReader {
  private enum Body {
    case length(Int)
    case chunks, end
  }

  private let isClient: Bool
  private var buffer: [UInt8] = []
  private var head: HTTPMessage?
  private var framing = Body.length(0)

  /// - Parameter isClient: Whether it reads responses.
  init(isClient: Bool) { self.isClient = isClient }

  /// Whether nothing of a further message has arrived.
  var isAtStart: Bool { buffer.isEmpty && head == nil }

  mutating func feed(_ bytes: ByteBuffer) { buffer.append(contentsOf: bytes.readableBytesView) }

  /// The head of the message under way, once that is here.
  mutating func nextHead() -> HTTPMessage? {
    while head == nil {
      guard let end = buffer.first([13, 10, 13, 10], from: 0) else { return nil }
      let message = Self.parsed(buffer[..<end])
      buffer.removeFirst(end + 4)
      // An interim response.
      if isClient, 100..<200 ~= message.status { continue }
      framing = frame(message)
      head = message
    }
    return head
  }

  private func frame(_ message: HTTPMessage) -> Body {
    if message.fields["transfer-encoding"] != nil { return .chunks }
    if let length = message.fields["content-length"].flatMap({ Int($0) }) { return .length(length) }
    return isClient && message.status != 204 && message.status != 304 ? .end : .length(0)
  }

  /// The next whole message.
  ///
  /// - Parameter hasEnded: Whether no more bytes arrive.
  mutating func next(hasEnded: Bool = false) -> HTTPMessage? {
    guard var message = nextHead() else { return nil }
    switch framing {
    case .length(let count):
      guard buffer.count >= count else { return nil }
      message.body = Array(buffer.prefix(count))
      buffer.removeFirst(count)
    case .chunks:
      guard let (body, end) = Self.chunks(buffer) else { return nil }
      message.body = body
      buffer.removeFirst(end)
    case .end:
      guard hasEnded else { return nil }
      message.body = buffer
      buffer = []
    }
    head = nil
    return message
  }

  /// The content of a chunked body, and where it ends; `nil` if it is not whole.
  private static func chunks(_ bytes: [UInt8]) -> ([UInt8], Int)? {
    var body: [UInt8] = []
    var at = 0
    while let end = bytes.first([13, 10], from: at) {
      guard let size = Int(String(decoding: bytes[at..<end], as: UTF8.self), radix: 16) else {
        return nil
      }
      at = end + 2
      guard bytes.count >= at + size + 2 else { return nil }
      if size == 0 { return (body, at + 2) }
      body += bytes[at..<(at + size)]
      at += size + 2
    }
    return nil
  }

  private static func parsed(_ head: ArraySlice<UInt8>) -> HTTPMessage {
    let lines = head.split(separator: 10).map { $0.last == 13 ? $0.dropLast() : $0 }
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
      let name = line[..<colon].map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
      let value = line[(colon + 1)...].drop { $0 == UInt8(ascii: " ") }
      fields[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
    }
    return HTTPMessage(start: String(decoding: lines.first ?? [], as: UTF8.self), fields: fields, body: [])
  }
}

/// A response of the world's backend.
struct OriginResponse {
  var status: Int
  var fields: [(String, String)] = []
  var body: String
  var isChunked = false

  /// Its bytes in HTTP/1.1.
  var text: String {
    var text = "HTTP/1.1 \(status) Status\r\n"
    for (name, value) in fields { text += "\(name): \(value)\r\n" }
    guard isChunked else { return text + "Content-Length: \(body.utf8.count)\r\n\r\n" + body }
    text += "Transfer-Encoding: chunked\r\n\r\n"
    let half = body.utf8.count / 2
    for part in [body.prefix(half), body.dropFirst(half)] where !part.isEmpty {
      text += String(part.utf8.count, radix: 16) + "\r\n" + part + "\r\n"
    }
    return text + "0\r\n\r\n"
  }
}

extension HTTPMessage {
  /// The value of a member of a flat JSON object, as its text.
  func member(_ name: String) -> String? { JSONText.member(name, of: body) }
}
