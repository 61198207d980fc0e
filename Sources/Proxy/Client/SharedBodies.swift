import Idempotency
import NIOCore
import Telemetry
import Wire

/// The body of a recorded response that clients are reading, held once for all of them.
final class SharedBody {
  let bytes: ByteBuffer
  fileprivate let recordedAt: StoreInstant
  /// The numbers of responses that read it, by the connections of these.
  fileprivate var readers: [ObjectIdentifier: Int] = [:]

  fileprivate init(_ bytes: ByteBuffer, recordedAt: StoreInstant) {
    self.bytes = bytes
    self.recordedAt = recordedAt
  }

  /// The number of a connection's responses that read it.
  func readers(of connection: ObjectIdentifier) -> Int { readers[connection, default: 0] }
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
  /// - Returns: `nil` if there is no memory for one more body.
  func enter(
    _ body: ByteBuffer, recordedAt: StoreInstant, of connection: ObjectIdentifier, within limits: MemoryLimits
  ) -> SharedBody? {
    let key = Key(recordedAt: recordedAt, length: body.readableBytes)
    if let shared = bodies[key]?.first(where: { $0.bytes == body }) {
      shared.readers[connection, default: 0] += 1
      return shared
    }
    let all = counters.change(.bodyBytes, by: key.length)
    let unread = counters.change(.unreadBytes, by: key.length)
    guard all <= limits.bodies, unread <= limits.unread else {
      giveBack(key.length)
      return nil
    }
    let shared = SharedBody(body, recordedAt: recordedAt)
    shared.readers[connection] = 1
    bodies[key, default: []].append(shared)
    return shared
  }

  func leave(_ body: SharedBody, of connection: ObjectIdentifier) {
    let readers = body.readers(of: connection) - 1
    invariant(readers >= 0, "a shared body is left by a connection that does not read it")
    body.readers[connection] = readers > 0 ? readers : nil
    guard body.readers.isEmpty else { return }
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
