import Idempotency
import NIOCore
import NIOHTTP2
import Telemetry

// The memory that a response holds until its client has taken it.
extension ClientStream {
  /// A whole response up to this, in bytes, never meets the limits of memory: a refusal must reach its client.
  private static var smallBytes: Int { 4 << 10 }
  /// Recorded bodies above this are shared with the other clients that read them.
  private static var sharedAbove: Int { 16 << 10 }

  /// Queues the body of a whole response. A response that finds no memory is reset; its outcome stays recorded.
  func write(_ body: ByteBuffer, of head: ClientResponseHead) {
    let count = body.readableBytes
    guard machine.isOpen else { return }
    if count <= Self.smallBytes {
      session.memory.force(count)
      heldBytes += count
      outgoing.append(body)
    } else if case .recorded(let record, _) = head.source, count > Self.sharedAbove {
      share(body, recordedAt: record.recordedAt)
    } else if hold(count) {
      outgoing.append(body)
    }
  }

  private func share(_ body: ByteBuffer, recordedAt: StoreInstant) {
    guard
      let shared = downstream.sharedBodies.enter(
        body, recordedAt: recordedAt, limit: CaptureShare.memory(forOthers: downstream.limits.bodyMemory))
    else { return resetWithoutMemory() }
    guard session.memory.enter(shared, beside: heldBytes + (delivery?.heldBytes ?? 0)) else {
      downstream.sharedBodies.leave(shared)
      return resetWithoutMemory()
    }
    sharedBody = shared
    outgoing.append(shared.bytes)
  }

  func leaveSharedBody() {
    guard let sharedBody else { return }
    session.memory.leave(sharedBody)
    downstream.sharedBodies.leave(sharedBody)
    self.sharedBody = nil
  }

  /// Takes memory for bytes that wait for the client. If there is none, resets the stream and returns false.
  func hold(_ count: Int) -> Bool {
    guard machine.isOpen else { return false }
    guard session.memory.take(count, beside: heldBytes + (delivery?.heldBytes ?? 0)) else {
      resetWithoutMemory()
      return false
    }
    heldBytes += count
    return true
  }

  func giveBack(_ count: Int) {
    guard count > 0 else { return }
    heldBytes -= count
    session.memory.give(count)
  }

  private func resetWithoutMemory() {
    downstream.environment.counters.add(.slowReaders)
    reset(.enhanceYourCalm)
  }

  func dropOutgoing() {
    if sharedBody == nil { giveBack(outgoing.count) }
    outgoing.removeAll()
    leaveSharedBody()
  }
}
