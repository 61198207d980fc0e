import Glibc

/// Makes sockets that are bound to loopback or to a path, and do not listen yet.
enum BoundSocket {
  static func make(_ address: RawServer.Address, receiveBuffer: Int32? = nil) throws -> (Int32, port: Int) {
    switch address {
    case .loopback:
      let descriptor = try open(AF_INET, receiveBuffer: receiveBuffer)
      var address = loopback(port: 0)
      try check("bind", with(&address) { bind(descriptor, $0, $1) })
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      try check("getsockname", with(&address) { address, _ in getsockname(descriptor, address, &length) })
      return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    case .unix(let path):
      let descriptor = try open(AF_UNIX, receiveBuffer: receiveBuffer)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
      try check("bind", with(&address) { bind(descriptor, $0, $1) })
      return (descriptor, 0)
    }
  }

  /// Begins to connect, and does not wait for it.
  static func startConnecting(to port: Int) throws -> Int32 {
    let descriptor = try open(AF_INET, flags: Int32(SOCK_NONBLOCK.rawValue))
    var address = loopback(port: port)
    _ = with(&address) { connect(descriptor, $0, $1) }
    return descriptor
  }

  private static func open(_ family: Int32, flags: Int32 = 0, receiveBuffer: Int32? = nil) throws -> Int32 {
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | flags, 0)
    try check("socket", descriptor)
    // Accepted connections inherit it; it bounds the bytes that the kernel takes while nobody reads.
    if var receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, 4) }
    return descriptor
  }

  private static func check(_ call: String, _ code: Int32) throws {
    guard code >= 0 else { throw RawServerError(call: call, code: errno) }
  }

  private static func loopback(port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func with<A>(
    _ address: inout A, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<A>.size)) }
    }
  }
}
