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
