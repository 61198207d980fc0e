import Foundation
import Glibc
import Synchronization
import Wire

/// Prints the introduction once both parts of the demo accept connections.
final class DemoIntroduction: Sendable {
  private let text: String
  private let missing = Mutex(2)

  init(port: Int, backend: ServerAddress) {
    text = DemoConfiguration.introduction(port: port, backend: backend)
  }

  func partIsListening() {
    let isComplete = missing.withLock { missing in
      missing -= 1
      return missing == 0
    }
    guard isComplete else { return }
    print(text)
    fflush(nil)
  }
}

enum DemoConfiguration {
  static func text(port: Int, backend: ServerAddress, store: String) -> String {
    """
    listen: [{address: "127.0.0.1:\(DemoPort.ofSemel(port))"}]
    upstreams: {orders: {url: "http://\(reachable(backend))"}}
    store: {kind: embedded, path: "\(store)"}
    log: {format: text}
    routes:
      - name: create-order
        match: {methods: [POST], path: /v1/orders}
        caller: {parts: ["header:Authorization"]}

    """
  }

  /// The address at which this machine reaches a listener: one on all addresses is reached by loopback.
  private static func reachable(_ listener: ServerAddress) -> ServerAddress {
    guard case .tcp(let host, let port) = listener else { return listener }
    return switch IPAddress(host)?.text {
    case "0.0.0.0": .tcp(host: "127.0.0.1", port: port)
    case "::": .tcp(host: "::1", port: port)
    default: listener
    }
  }

  static func introduction(port: Int, backend: ServerAddress) -> String {
    let port = DemoPort.ofSemel(port)
    let order = """
      curl -i http://127.0.0.1:\(port)/v1/orders -H 'Authorization: Bearer alice' \\
           -H 'Idempotency-Key: order-1' -H 'Content-Type: application/json'
      """
    return """
      A demo backend that takes a second for an order listens on \(backend), Semel before it on 127.0.0.1:\(port).
      Ctrl-C ends both. In another terminal:

      1. The first delivery runs:
         \(indented(order)) -d '{"item":"book"}'

      2. The same again is replayed from the record, and the backend does not run (Idempotency-Status: replayed):
         \(indented(order)) -d '{ "item": "book" }'

      3. Another payload under the same key is refused (409 payload_mismatch):
         \(indented(order)) -d '{"item":"car"}'

      4. Five deliveries at once, of a key that is new: one runs, the others wait for its response:
         for i in 1 2 3 4 5; do
           curl -s http://127.0.0.1:\(port)/v1/orders -H 'Authorization: Bearer alice' \\
                -H 'Idempotency-Key: order-2' -H 'Content-Type: application/json' -d '{"item":"lamp"}' &
         done; wait

      5. What the backend really ran:
         curl http://127.0.0.1:\(port)/v1/orders

      """
  }

  private static func indented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\n   ")
  }
}

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
