import Glibc

/// The ports in place of 0. The configuration and the introduction name both before anything listens on them.
enum DemoPort {
  private static let semel = reserve()
  private static let backend = reserve()

  static func ofSemel(_ wanted: Int) -> Int { wanted == 0 ? semel : wanted }

  static func ofBackend(_ wanted: Int) -> Int { wanted == 0 ? backend : wanted }

  /// A free port, which no other program is given while this one runs; 0 if there is none. The socket stays bound and
  /// never listens; both listeners set `SO_REUSEADDR`, and so can share its address.
  private static func reserve() -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var yes: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(descriptor, pointer, length) == 0 && getsockname(descriptor, pointer, &length) == 0
      }
    }
    return isBound ? Int(UInt16(bigEndian: address.sin_port)) : 0
  }
}
