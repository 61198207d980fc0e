extension ReceivedResponse {
  /// The meaning of the bytes that a client has so far.
  package enum Parsed: Sendable {
    case incomplete
    /// A response, and how many of the bytes it takes.
    case whole(ReceivedResponse, count: Int)
    case malformed(String)
  }

  /// Reads the first response in `bytes`, for a request of `method`. `isClosed`: no byte will follow.
  ///
  /// Responses of 1xx are responses of their own here.
  package static func parse(_ bytes: [UInt8], to method: String, isClosed: Bool) -> Parsed {
    guard let end = endOfHead(bytes) else {
      return isClosed && !bytes.isEmpty ? .malformed("the head is cut") : .incomplete
    }
    guard var response = parseHead(Array(bytes[..<end])) else {
      return .malformed(String(decoding: bytes[..<end], as: UTF8.self))
    }
    let rest = bytes[end...]
    if method == "HEAD" || response.status < 200 || response.status == 204 || response.status == 304 {
      return .whole(response, count: end)
    }
    if response["Transfer-Encoding"]?.lowercased() == "chunked" {
      return response.parseChunks(bytes, from: end, isClosed: isClosed)
    }
    if let length = response["Content-Length"] {
      guard let length = Int(length) else { return .malformed("Content-Length \(length)") }
      guard rest.count >= length else { return isClosed ? .malformed("the body is cut") : .incomplete }
      response.body = Array(rest.prefix(length))
      return .whole(response, count: end + length)
    }
    response.body = Array(rest)
    return isClosed ? .whole(response, count: bytes.count) : .incomplete
  }

  private static func endOfHead(_ bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4 else { return nil }
    for index in 0...bytes.count - 4
    where bytes[index] == 13 && bytes[index + 1] == 10 && bytes[index + 2] == 13 && bytes[index + 3] == 10 {
      return index + 4
    }
    return nil
  }

  private static func parseHead(_ head: [UInt8]) -> ReceivedResponse? {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    let words = lines[0].split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let minor = Int(words[0].dropFirst(7)),
      words[1].count == 3, let status = Int(words[1])
    else { return nil }
    let fields = lines.dropFirst().compactMap(field)
    guard fields.count == lines.count - 1 else { return nil }
    return ReceivedResponse(head: head, status: status, minorVersion: minor, fields: fields)
  }

  private static func field(_ line: Substring) -> (name: String, value: String)? {
    guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { return nil }
    let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
    return (String(line[..<colon]), String(value))
  }

  private mutating func parseChunks(_ bytes: [UInt8], from start: Int, isClosed: Bool) -> Parsed {
    let short: Parsed = isClosed ? .malformed("the chunks are cut") : .incomplete
    var position = start
    func line() -> String? {
      guard let end = bytes[position...].firstIndex(of: 10), end > position else { return nil }
      defer { position = end + 1 }
      return String(decoding: bytes[position..<end - 1], as: UTF8.self)
    }
    while true {
      guard let size = line() else { return short }
      guard let count = Int(size.prefix { $0 != ";" }, radix: 16) else { return .malformed("chunk \(size)") }
      if count == 0 { break }
      guard bytes.count >= position + count + 2 else { return short }
      body += bytes[position..<position + count]
      position += count + 2
    }
    while true {
      guard let trailer = line() else { return short }
      if trailer.isEmpty { return .whole(self, count: position) }
      guard let field = Self.field(trailer[...]) else { return .malformed(trailer) }
      trailers.append(field)
    }
  }
}
