import Glibc

/// One accepted connection, used by its script alone. Every call blocks.
package final class RawConnection {
  /// 1 for the first connection of the server.
  package let number: Int
  private let server: RawServer
  private var descriptor: Int32
  private var unread: [UInt8] = []
  /// The index of the request that was read last.
  private var index = 0

  init(descriptor: Int32, number: Int, server: RawServer) {
    self.descriptor = descriptor
    self.number = number
    self.server = server
  }

  /// Reads one request: its head, and its body by `Content-Length` or chunks. Throws at the connection's end.
  @discardableResult
  package func readRequest() throws -> String {
    let head = try readHead()
    let lines = head.lowercased().split(separator: "\r\n")
    var body: [UInt8] = []
    if let line = lines.first(where: { $0.hasPrefix("content-length:") }) {
      body = try read(Int(line.dropFirst("content-length:".count).filter { $0 != " " }) ?? 0)
    } else if lines.contains("transfer-encoding: chunked") {
      body = try readChunks()
    }
    let request = head + String(decoding: body, as: UTF8.self)
    server.count { [index] in $0.received[index] = request }
    return request
  }

  /// Reads up to the empty line, and counts a request.
  @discardableResult
  package func readHead() throws -> String {
    let end = Array("\r\n\r\n".utf8)
    while true {
      if let found = unread.firstRange(of: end) {
        let head = String(decoding: unread[..<found.upperBound], as: UTF8.self)
        unread.removeFirst(found.upperBound)
        let tally = server.count {
          $0.requests += 1
          $0.received.append(head)
        }
        index = tally.received.count - 1
        return head
      }
      try receive()
    }
  }

  /// Reads just so many bytes.
  package func read(_ count: Int) throws -> [UInt8] {
    while unread.count < count { try receive() }
    defer { unread.removeFirst(count) }
    return Array(unread[..<count])
  }

  /// Reads whatever comes until the peer ends the connection.
  package func readToEnd() {
    while (try? receive()) != nil { unread.removeAll() }
  }

  package func write(_ text: String) throws { try write(Array(text.utf8)) }

  package func write(_ bytes: [UInt8]) throws {
    var written = 0
    while written < bytes.count {
      let count = bytes[written...].withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw RawServerError(call: "send", code: errno) }
      written += count
      server.count { $0.written += count }
    }
  }

  /// Writes, and ends the sending direction in the same segment. False if that may have been torn: the kernel sends what
  /// it holds back after a fifth of a second.
  @discardableResult
  package func writeLast(_ text: String) throws -> Bool {
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &one, 4)
    let start = ContinuousClock.now
    try write(text)
    halfClose()
    return ContinuousClock.now - start < .milliseconds(150)
  }

  /// Ends the sending direction.
  package func halfClose() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Closes; with unread bytes the kernel makes a reset of it.
  package func close() {
    guard descriptor >= 0 else { return }
    Glibc.close(descriptor)
    descriptor = -1
  }

  /// Closes with a reset.
  package func reset() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
    close()
  }

  private func readChunks() throws -> [UInt8] {
    var raw: [UInt8] = []
    while true {
      let size = try readLine()
      raw += size
      let count = Int(String(decoding: size.dropLast(2), as: UTF8.self), radix: 16) ?? 0
      raw += try read(count + 2)
      if count == 0 { return raw }
    }
  }

  private func readLine() throws -> [UInt8] {
    while true {
      if let feed = unread.firstIndex(of: 0x0A) { return try read(feed + 1) }
      try receive()
    }
  }

  private func receive() throws {
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else { throw RawServerError(call: "recv", code: count == 0 ? 0 : errno) }
    unread += buffer[..<count]
    server.count { $0.bytes += count }
  }
}
