import Idempotency
import NIOCore
import Telemetry
import Wire

/// The body of a recorded response that clients are reading, held once for all of them.
final class SharedBody {
  let bytes: ByteBuffer
  fileprivate let recordedAt: StoreInstant
  fileprivate var readers = 0

  fileprivate init(_ bytes: ByteBuffer, recordedAt: StoreInstant) {
    self.bytes = bytes
    self.recordedAt = recordedAt
  }
}

/// The recorded bodies that slow clients of one loop are reading. Confined to its loop.
final class SharedBodies {
  private struct Key: Hashable {
    let recordedAt: StoreInstant
    let length: Int
  }

  private let counters: Counters
  private var bodies: [Key: [SharedBody]] = [:]

  init(counters: Counters) { self.counters = counters }

  /// Adds a reader of a body. The readers of equal bytes share one buffer, that of the first. `leave` must follow.
  ///
  /// - Parameters:
  ///   - limit: The bytes that all bodies may take.
  ///   - limitOfUnread: The bytes that responses that wait for their clients may take.
  /// - Returns: `nil` if there is no memory for one more body.
  func enter(_ body: ByteBuffer, recordedAt: StoreInstant, limit: Int, limitOfUnread: Int) -> SharedBody? {
    let key = Key(recordedAt: recordedAt, length: body.readableBytes)
    if let shared = bodies[key]?.first(where: { $0.bytes == body }) {
      invariant(shared.readers > 0, "a shared body is kept that nobody reads")
      shared.readers += 1
      return shared
    }
    let all = counters.change(.bodyBytes, by: key.length)
    let unread = counters.change(.unreadBytes, by: key.length)
    guard all <= limit, unread <= limitOfUnread else {
      giveBack(key.length)
      return nil
    }
    let shared = SharedBody(body, recordedAt: recordedAt)
    shared.readers = 1
    bodies[key, default: []].append(shared)
    return shared
  }

  func leave(_ body: SharedBody) {
    invariant(body.readers > 0, "a shared body is left that nobody reads")
    body.readers -= 1
    guard body.readers == 0 else { return }
    let key = Key(recordedAt: body.recordedAt, length: body.bytes.readableBytes)
    giveBack(key.length)
    invariant(bodies[key] != nil, "a shared body is given back that is not kept")
    bodies[key]?.removeAll { $0 === body }
    if bodies[key]?.isEmpty == true { bodies[key] = nil }
  }

  private func giveBack(_ count: Int) {
    counters.change(.bodyBytes, by: -count)
    counters.change(.unreadBytes, by: -count)
  }
}
