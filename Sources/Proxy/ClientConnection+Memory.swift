import Idempotency
import NIOCore
import Telemetry

// The memory that an answer holds until its client has taken it.
extension ClientConnection {
  /// A whole answer up to this, in bytes, never meets the limits of memory: a refusal must reach its client.
  private static var smallBytes: Int { 4 << 10 }

  /// Counts what waits for the client as it is now. An answer that finds no memory is cut; its outcome stays recorded.
  func account() {
    let waiting = unread + (sharedBody == nil && !isSharing ? outgoing.count : 0)
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

  /// What the delivery under way holds, with the body that its answer is read from.
  private var ownBytes: Int {
    heldBytes + (delivery?.heldBytes ?? 0) + (sharedBody?.bytes.readableBytes ?? 0)
  }

  /// Reads what is outgoing of a recorded body from the buffer in which others read it already.
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
    sharedBody = shared
    outgoing.replace(body, by: shared.bytes)
  }

  func leaveSharedBody() {
    guard let sharedBody else { return }
    memory.leave(sharedBody)
    downstream.sharedBodies.leave(sharedBody)
    self.sharedBody = nil
  }

  /// Nothing waits any more.
  func dropOutgoing() {
    outgoing.removeAll()
    leaveSharedBody()
    memory.give(heldBytes)
    heldBytes = 0
  }

  private func cutWithoutMemory() {
    downstream.environment.counters.add(.slowReaders)
    isClosing = true
    dropOutgoing()
    reset()
  }
}
