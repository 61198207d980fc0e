import Idempotency
import NIOCore
import Telemetry
import Wire

/// A duplicate's wait for the delivery that owns its record. Ends by `end()`, which its runner must call.
final class DuplicateWait<Store: RecordStore>: @unchecked Sendable {
  private let watch: Store.Watch
  private let deadline: NIODeadline
  private let id: RecordID
  private let environment: ProxyEnvironment
  private var hasEnded = false

  /// `nil` where the delivery may not wait: by the route's setting, by its own `Prefer: wait=0`, or because as many
  /// wait for the key as may.
  init?<Backend: Upstream>(
    for call: KeyedCall, of runner: RequestRunner<Store, Backend>
  ) async throws(Problem) {
    let span = Self.span(by: call.route, head: runner.head)
    id = call.id
    environment = runner.environment
    deadline = .now() + .milliseconds(span.count)
    guard span > 0, environment.waiting.enter(id, most: call.route.policy.maxWaiters) else { return nil }
    do {
      watch = try await runner.worker.store.watch(id)
    } catch {
      environment.waiting.leave(id)
      throw .storeUnavailable(retryAfter: 1000)
    }
    environment.counters.change(.waiting, by: 1)
  }

  /// Waits until the record may have changed or its lease is over. False once the delivery has waited long enough.
  func changed(leaseLeft: Milliseconds) async -> Bool {
    let left = Milliseconds((deadline - .now()).nanoseconds / 1_000_000)
    guard left > 0 else { return false }
    // A moment past the lease's end, so that the store surely sees it lapsed.
    await watch.changed(within: min(left, max(leaseLeft, 0) + 20))
    return true
  }

  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    watch.cancel()
    environment.waiting.leave(id)
    environment.counters.change(.waiting, by: -1)
  }

  /// How long a duplicate may wait: the route's time, or less where the client prefers (RFC 7240, `wait`).
  private static func span(by route: Route, head: MessageHead) -> Milliseconds {
    if let preferred = preferredWait(head) { return min(.seconds(preferred), route.policy.waitTimeout) }
    return route.policy.duplicates == .wait ? route.policy.waitTimeout : 0
  }

  private static func preferredWait(_ head: MessageHead) -> Int64? {
    for field in head.fields where field.name == .prefer {
      for preference in head.string(field.valueRange).split(separator: ",") {
        let parts = preference.split(separator: "=", maxSplits: 1).map { $0.trimmingSpaces }
        guard parts.count == 2, parts[0].lowercased() == "wait" else { continue }
        // More than nine digits of seconds are as good as for ever, and are capped anyway.
        if let seconds = Int64(parts[1].prefix(9)), seconds >= 0 { return seconds }
      }
    }
    return nil
  }
}

extension Substring {
  /// Without the spaces and tabs around it.
  fileprivate var trimmingSpaces: Substring {
    var text = self
    while text.first == " " || text.first == "\t" { text.removeFirst() }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }
}
