import Idempotency
import NIOCore
import Platform

// The end of a connection that rests: at a stop, or for a new one.
extension ClientConnection {
  var deliveries: [Delivery] { delivery.map { [$0] } ?? [] }

  /// Ends an idle connection once the client has taken the rest of its last response, within `write_timeout`. A request
  /// that is on its way from the kernel still gets a response.
  func drain() {
    guard machine.drain(hasUndecoded: hasArrived || inbound.readableBytes > 0) else { return }
    if hasUnread { extendDeadline(by: downstream.limits.writeTimeout) }
    closeOnceWritten()
  }

  /// The time since which no request is under way. A head that is not whole is none: else slow heads could take every
  /// connection.
  var restingSince: NIODeadline? { delivery == nil && !hasUnread ? touchedAt : nil }

  var client: MemoryHolder? { memory.client }

  func closeResting() -> Bool {
    guard machine.drain(hasUndecoded: hasArrived) else { return false }
    closeOnceWritten()
    return true
  }

  /// Whether the kernel has bytes that were not read yet.
  private var hasArrived: Bool { context.flatMap { writer?.hasUnread($0) } ?? false }

  func resetUnread() {
    // A refusal of this turn may only wait for the batch.
    writer?.flush()
    if hasUnread { cut() }
  }

  var hasUnread: Bool { !outgoing.isEmpty || waitingInNIO > 0 || writer?.hasBatched == true }
}
