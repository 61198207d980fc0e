import Idempotency
import NIOCore

/// The transfers of one backend on one event loop: those at work, those kept for the next, and who waits for one.
///
/// HTTP/1.1 has one transfer a connection, so bounding the transfers bounds the connections.
final class TransferPool {
  let settings: UpstreamSettings
  /// How many transfers may be at work.
  let limit: Int
  private var all: [CurlTransfer] = []
  private var idle: [CurlTransfer] = []
  private var waiting = CircularBuffer<CurlExchange>(initialCapacity: 4)
  private(set) var busy = 0

  init(settings: UpstreamSettings, loops: Int) {
    self.settings = settings
    limit = max(1, settings.maxConnections / max(1, loops))
  }

  /// What is at work or waits.
  var exchanges: [CurlExchange] { all.compactMap(\.exchange) + waiting }

  var isIdle: Bool { busy == 0 && waiting.isEmpty }

  /// A transfer for one more exchange, `nil` where all are at work.
  func take(of upstream: UnsafeMutableRawPointer) -> CurlTransfer? {
    guard busy < limit else { return nil }
    busy += 1
    if let transfer = idle.popLast() { return transfer }
    let transfer = CurlTransfer(for: settings, of: upstream)
    all.append(transfer)
    return transfer
  }

  func give(back transfer: CurlTransfer) {
    transfer.finish()
    busy -= 1
    idle.append(transfer)
  }

  func enqueue(_ exchange: CurlExchange) { waiting.append(exchange) }

  /// The next one that still waits, where there is room for it.
  func nextWaiting() -> CurlExchange? {
    while busy < limit, let exchange = waiting.popFirst() {
      if exchange.isWaiting { return exchange }
    }
    return nil
  }
}
