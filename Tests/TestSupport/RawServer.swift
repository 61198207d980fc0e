import Glibc
import Synchronization

/// A TCP server that does byte by byte what its script says: one thread a connection, blocking reads.
///
/// The script of a connection is plain code on a `RawConnection`. What was counted and read is to be had from any
/// thread, and can be awaited.
package final class RawServer: Sendable {
  package enum Address: Sendable { case loopback, unix(path: String) }

  /// What was seen so far.
  package struct Tally: Sendable {
    package var connections = 0
    /// Requests whose head was read whole.
    package var requests = 0
    /// Bytes read, heads and bodies.
    package var bytes = 0
    /// Bytes that the kernel has taken of what the script wrote.
    package var written = 0
    /// The requests as they came: head and what was read of the body.
    package var received: [String] = []
  }

  private struct State {
    var tally = Tally()
    var waiters: [(isMet: @Sendable (Tally) -> Bool, waiter: UnsafeContinuation<Void, Never>)] = []
  }

  /// Where it listens on loopback; 0 with a unix socket.
  package let port: Int
  private let listener: Int32
  private let state = Mutex(State())

  package init(
    _ address: Address = .loopback, receiveBuffer: Int32? = nil,
    script: @escaping @Sendable (RawConnection) throws -> Void
  ) throws {
    (listener, port) = try Self.listen(address, receiveBuffer: receiveBuffer)
    startThread { [self] in
      while true {
        let descriptor = accept(listener, nil, nil)
        guard descriptor >= 0 else { return }
        let number = count { $0.connections += 1 }.connections
        startThread { [self] in
          let connection = RawConnection(descriptor: descriptor, number: number, server: self)
          try? script(connection)
          connection.close()
        }
      }
    }
  }

  /// What was seen so far.
  package var tally: Tally { state.withLock { $0.tally } }

  /// Waits until what was seen meets the condition.
  package func reached(_ isMet: @escaping @Sendable (Tally) -> Bool) async {
    await withUnsafeContinuation { waiter in
      let isMetNow = state.withLock { state in
        if isMet(state.tally) { return true }
        state.waiters.append((isMet, waiter))
        return false
      }
      if isMetNow { waiter.resume() }
    }
  }

  /// Stops listening: connects are refused from now on.
  package func close() { shutdown(listener, Int32(SHUT_RDWR)) }

  deinit { Glibc.close(listener) }

  @discardableResult
  func count(_ change: (inout Tally) -> Void) -> Tally {
    let (tally, met) = state.withLock { state in
      change(&state.tally)
      let tally = state.tally
      let met = state.waiters.filter { $0.isMet(tally) }.map(\.waiter)
      state.waiters.removeAll { $0.isMet(tally) }
      return (tally, met)
    }
    for waiter in met { waiter.resume() }
    return tally
  }
}

extension RawServer {
  /// A port of loopback that nobody listens on.
  package static func refusedPort() throws -> Int {
    let (descriptor, port) = try listen(.loopback, receiveBuffer: nil)
    Glibc.close(descriptor)
    return port
  }

  /// A port of loopback whose accept queue is full: connects to it hang.
  package static func hangingPort() throws -> (port: Int, sockets: [Int32]) {
    let (listener, port) = try listen(.loopback, receiveBuffer: nil, backlog: 0)
    var sockets = [listener]
    for _ in 0..<4 {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
      var address = loopback(port: port)
      _ = withAddress(&address) { connect(descriptor, $0, $1) }
      sockets.append(descriptor)
    }
    return (port, sockets)
  }

  private static func listen(
    _ address: Address, receiveBuffer: Int32?, backlog: Int32 = 512
  ) throws -> (descriptor: Int32, port: Int) {
    let isUnix = if case .unix = address { true } else { false }
    let descriptor = socket(isUnix ? AF_UNIX : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw RawServerError(call: "socket", code: errno) }
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, 4)
    if var receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, 4) }
    let code: Int32
    switch address {
    case .loopback:
      var address = loopback(port: 0)
      code = withAddress(&address) { bind(descriptor, $0, $1) }
    case .unix(let path):
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
      code = withAddress(&address) { bind(descriptor, $0, $1) }
    }
    guard code == 0, Glibc.listen(descriptor, backlog) == 0 else {
      throw RawServerError(call: "listen", code: errno)
    }
    guard !isUnix else { return (descriptor, 0) }
    var bound = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withAddress(&bound) { address, _ in getsockname(descriptor, address, &length) }
    return (descriptor, Int(UInt16(bigEndian: bound.sin_port)))
  }

  private static func loopback(port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }

  private static func withAddress<A>(
    _ address: inout A, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<A>.size)) }
    }
  }
}

/// A system call of a scripted server failed, or its peer went away.
package struct RawServerError: Error {
  package var call: String
  package var code: Int32
}

/// Starts a detached thread.
private func startThread(_ body: @escaping @Sendable () -> Void) {
  final class Body: Sendable {
    let run: @Sendable () -> Void
    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
  var thread = pthread_t()
  let body = Unmanaged.passRetained(Body(run: body))
  let code = pthread_create(
    &thread, nil,
    { body in
      guard let body else { return nil }
      Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run()
      return nil
    }, body.toOpaque())
  precondition(code == 0, "RawServer: no thread could be started")
  pthread_detach(thread)
}
