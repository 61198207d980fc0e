import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

// Time-outs of the client.
extension ClientConnection {
  func extendDeadline(by span: Milliseconds) {
    touchedAt = .now()
    deadline = touchedAt + .milliseconds(span.count)
    if deadline < timerDue { restartTimer() }
  }

  func startTimer() {
    timerDue = deadline
    let left = max(Milliseconds(deadline - .now()).count, 1)
    timer = downstream.context.timers.start(milliseconds: left) { [self] in timerFired() }
  }

  func restartTimer() {
    stopTimer()
    startTimer()
  }

  func stopTimer() {
    if let timer { downstream.context.timers.stop(timer) }
    timer = nil
  }

  /// The deadline moves with each request, the timer only when it has fired: most requests start no timer.
  private func timerFired() {
    timer = nil
    guard NIODeadline.now() >= deadline else { return startTimer() }
    guard waitingInNIO == 0 else { return lookAtReader() }
    switch machine.timedOut(hasUndecoded: inbound.readableBytes > 0) {
    case .extend: startTimer(in: downstream.limits.idleTimeout)
    case .refuse: refuseSlowHead()
    case .close:
      writer?.flush()
      context?.close(promise: nil)
    }
  }

  /// The number of bytes that NIO holds because the socket does not take them. Those of the batch are not counted: they
  /// leave in this turn.
  var waitingInNIO: Int {
    guard let options = context?.channel.syncOptions else { return 0 }
    return (try? options.getOption(.bufferedWritableBytes)) ?? 0
  }

  /// A client that takes less of its response than the least rate demands is cut.
  private func lookAtReader() {
    guard written - waitingInNIO - taken >= LeastRate.bytes(in: downstream.limits.writeTimeout) else {
      downstream.environment.counters.add(.slowReaders)
      return reset()
    }
    taken = written - waitingInNIO
    startTimer(in: downstream.limits.writeTimeout)
  }

  private func startTimer(in span: Milliseconds) {
    deadline = .now() + .milliseconds(span.count)
    startTimer()
  }

  private func refuseSlowHead() {
    downstream.noteUnread(.requestTimeout, from: peer)
    refuse(.requestTimeout)
  }
}

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
