import Glibc
import SimRedis
import TestSupport

/// A blocking connection to a real server.
final class RealConnection {
  private let descriptor: Int32
  private var parser = RESPReplyParser()

  init(_ server: RedisServer) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: server.socketPath.utf8) }
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    // A reply that does not come is a difference.
    var patience = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    guard code == 0 else { throw TestFailure("the server cannot be reached") }
  }

  deinit { close(descriptor) }

  func write(_ bytes: Bytes) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { throw TestFailure("the server takes nothing") }
      rest = rest.dropFirst(count)
    }
  }

  /// The next reply.
  func read() throws -> RESPReply {
    while true {
      if let reply = parser.next() { return reply }
      let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
        count = max(0, recv(descriptor, buffer.baseAddress, buffer.count, 0))
      }
      guard !bytes.isEmpty else { throw TestFailure("the server does not reply") }
      parser.feed(bytes)
    }
  }

  func call(_ words: String...) throws -> RESPReply {
    try write(words.map { Bytes($0.utf8) }.encoded)
    return try read()
  }
}
