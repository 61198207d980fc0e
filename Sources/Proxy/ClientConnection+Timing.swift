import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

// How long a client may take, and what becomes of one that takes longer.
extension ClientConnection {
  func extendDeadline(by span: Milliseconds) {
    deadline = .now() + .milliseconds(span.count)
    if deadline < timerDue { restartTimer() }
  }

  func startTimer() {
    timerDue = deadline
    let left = max((deadline - .now()).nanoseconds / 1_000_000, 1)
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

  /// The deadline moves on with each request, the timer only when it has fired: mostly no timer is started for one.
  private func timerFired() {
    timer = nil
    guard NIODeadline.now() >= deadline else { return startTimer() }
    if unread > 0 {
      lookAtReader()
    } else if delivery != nil, !isTunnel {
      // It has time-outs of its own.
      goOn(for: downstream.limits.idleTimeout)
    } else if inbound.readableBytes > 0, !isClosing {
      refuseSlowHead()
    } else {
      context?.close(promise: nil)
    }
  }

  /// What was written and has not left yet.
  var unread: Int {
    guard let options = context?.channel.syncOptions else { return 0 }
    return (try? options.getOption(.bufferedWritableBytes)) ?? 0
  }

  /// A client may read its answer as slowly as it likes; one that takes nothing is cut.
  private func lookAtReader() {
    guard written - unread > taken else {
      downstream.environment.counters.add(.slowReaders)
      return reset()
    }
    taken = written - unread
    goOn(for: downstream.limits.writeTimeout)
  }

  private func goOn(for span: Milliseconds) {
    deadline = .now() + .milliseconds(span.count)
    startTimer()
  }

  private func refuseSlowHead() {
    downstream.metrics.refusedUnread(.requestTimeout)
    refuse(.requestTimeout)
  }

  var deliveries: [Delivery] { delivery.map { [$0] } ?? [] }

  /// Holds the next request against the limits that are now.
  func adopt(_ limits: ProxyLimits) {
    // One within a head or with a delivery under way goes on by the old ones, until it has ended.
    if delivery == nil { decoder.adopt(limits.head) }
  }

  /// Closes a connection that waits for its next request; one with a delivery under way closes after its answer.
  func drain() {
    guard delivery == nil, inbound.readableBytes == 0 else { return }
    isClosing = true
    context?.close(promise: nil)
  }
}
