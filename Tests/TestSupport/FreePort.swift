import Glibc
import Synchronization

/// TCP ports of the loopback address on which nobody listens.
package enum FreePort {
  /// Below the range from which Linux gives ports to connecting sockets (32768 on), and above those that the tests in
  /// Python choose, so that none of them takes a port between its choice here and its use by a server.
  private static let range = 20000..<32768
  /// Two test processes start at different places.
  private static let next = Mutex(Int.random(in: range))

  /// A port that nobody listens on, and that this process is given no second time until all others were.
  package static func find() -> Int {
    for _ in range {
      let port = next.withLock { next in
        defer { next = next + 1 == range.upperBound ? range.lowerBound : next + 1 }
        return next
      }
      if isFree(port) { return port }
    }
    preconditionFailure("FreePort: every port from \(range.lowerBound) on is taken")
  }

  private static func isFree(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    precondition(descriptor >= 0, "FreePort: no socket, errno \(errno)")
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}
