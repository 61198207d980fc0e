import Foundation
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A server on a free port of this machine that treats each connection alike: it reads one request, sends the same
/// bytes, and closes it.
///
/// It is no HTTP server, so that it can send what none would.
final class Listener: Sendable {
  /// The course of a connection.
  struct Script: Sendable {
    /// Whether a request is read before anything is sent.
    var readsRequest = true
    var bytes = ""
    /// Whether the connection stays open.
    var isHeld = false
  }

  let port: UInt16
  /// The requests as they come.
  let requests: AsyncStream<String>
  private let descriptor: Int32
  private let state = Mutex((received: [String](), held: [Int32]()))

  /// The requests that have come.
  var received: [String] { state.withLock { $0.received } }

  convenience init(sending bytes: String) throws { try self.init(Script(bytes: bytes)) }

  init(_ script: Script) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(descriptor, pointer, size) == 0 && listen(descriptor, 16) == 0
          && getsockname(descriptor, pointer, &size) == 0
      }
    }
    try #require(isBound)
    port = UInt16(bigEndian: address.sin_port)
    let (requests, sink) = AsyncStream.makeStream(of: String.self)
    self.requests = requests
    Thread.detachNewThread { [self] in
      // A client may keep a connection on which it sends nothing, so that each has a thread.
      while case let connection = accept(descriptor, nil, nil), connection >= 0 {
        Thread.detachNewThread { [self] in serve(connection, script, sink) }
      }
      #if canImport(Glibc)
        // Not before: the number might be another listener's by then, whose connections this one would take.
        close(descriptor)
      #endif
    }
  }

  private func serve(_ connection: Int32, _ script: Script, _ sink: AsyncStream<String>.Continuation) {
    if script.readsRequest {
      let request = Self.request(from: connection)
      state.withLock { $0.received.append(request) }
      sink.yield(request)
    }
    let bytes = Array(script.bytes.utf8)
    _ = write(connection, bytes, bytes.count)
    if script.isHeld { state.withLock { $0.held.append(connection) } } else { close(connection) }
  }

  /// One request with the body whose length it states, or what came of it.
  private static func request(from connection: Int32) -> String {
    var (text, buffer) = ("", [UInt8](repeating: 0, count: 65_536))
    while true {
      let count = read(connection, &buffer, buffer.count)
      guard count > 0 else { return text }
      text += String(decoding: buffer[..<count], as: UTF8.self)
      guard let end = text.range(of: "\r\n\r\n") else { continue }
      let length = text[..<end.lowerBound].lowercased().components(separatedBy: "content-length: ").last
      let stated = length.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
      if text[end.upperBound...].utf8.count >= stated { return text }
    }
  }

  /// Ends the listener: a connection to its port is refused from now on.
  func stop() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    #if !canImport(Glibc)
      close(descriptor)
    #endif
    for connection in state.withLock({ $0.held }) { close(connection) }
  }
}
