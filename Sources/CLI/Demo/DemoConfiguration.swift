import Foundation
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
