import Glibc
import Platform
import Synchronization

/// A TCP server that does byte by byte what its script says: one thread a connection, blocking reads.
///
/// The script of a connection is plain code on a `RawConnection`. What was counted and read is to be had from any
/// thread, and can be awaited.
package final class RawServer: Sendable {
  package enum Address: Sendable { case loopback, unix(path: String) }

  /// The counts so far.
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

  /// The port on loopback; 0 with a unix socket.
  package let port: Int
  private let listener: Int32
  private let state = Mutex(State())

  package init(
    _ address: Address = .loopback, receiveBuffer: Int32? = nil,
    script: @escaping @Sendable (RawConnection) throws -> Void
  ) throws {
    (listener, port) = try BoundSocket.make(address, receiveBuffer: receiveBuffer)
    guard listen(listener, 512) == 0 else { throw RawServerError(call: "listen", code: errno) }
    startNeededThread { [self] in
      while true {
        let descriptor = accept(listener, nil, nil)
        guard descriptor >= 0 else { return }
        let number = count { $0.connections += 1 }.connections
        startNeededThread { [self] in
          let connection = RawConnection(descriptor: descriptor, number: number, server: self)
          try? script(connection)
          connection.close()
        }
      }
    }
  }

  /// The counts so far.
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

/// A system call of a scripted server failed, or its peer went away.
package struct RawServerError: Error {
  package var call: String
  package var code: Int32
}
