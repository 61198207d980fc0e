import Idempotency
import NIOCore
import Telemetry

// The memory that a response holds until its client has taken it.
extension ClientConnection {
  /// A whole response up to this, in bytes, never meets the limits of memory: a refusal must reach its client.
  private static var smallBytes: Int { 4 << 10 }

  /// Counts the bytes that wait for the client now. A response that finds no memory is cut; its outcome stays recorded.
  func account() {
    let waiting = unread + ownOutgoingBytes
    let change = waiting - heldBytes
    if change <= 0 {
      memory.give(-change)
    } else if waiting <= Self.smallBytes {
      memory.force(change)
    } else if !memory.take(change, beside: ownBytes) {
      return cutWithoutMemory()
    }
    heldBytes = waiting
  }

  private var ownOutgoingBytes: Int {
    switch responseMemory {
    case .own: outgoing.count
    case .undecided, .shared: 0
    }
  }

  /// The bytes that the delivery under way holds, with the body that its response is read from.
  private var ownBytes: Int {
    let bytes = heldBytes + (delivery?.heldBytes ?? 0)
    guard case .shared(let body) = responseMemory else { return bytes }
    return bytes + body.bytes.readableBytes
  }

  /// Reads the rest of a recorded body from the buffer that others read already.
  func share(_ body: ByteBuffer, of record: CompletedRecord) {
    guard
      let shared = downstream.sharedBodies.enter(
        body, recordedAt: record.recordedAt,
        limit: CaptureShare.memory(forOthers: downstream.limits.bodyMemory))
    else { return cutWithoutMemory() }
    guard memory.enter(shared, beside: heldBytes + (delivery?.heldBytes ?? 0)) else {
      downstream.sharedBodies.leave(shared)
      return cutWithoutMemory()
    }
    responseMemory = .shared(shared)
    outgoing.replace(body, by: shared.bytes)
  }

  func leaveSharedBody() {
    guard case .shared(let body) = responseMemory else { return }
    memory.leave(body)
    downstream.sharedBodies.leave(body)
    responseMemory = .own
  }

  /// Drops everything that waits for the client.
  func dropOutgoing() {
    outgoing.removeAll()
    leaveSharedBody()
    memory.give(heldBytes)
    heldBytes = 0
  }

  private func cutWithoutMemory() {
    downstream.environment.counters.add(.slowReaders)
    cut()
  }
}
