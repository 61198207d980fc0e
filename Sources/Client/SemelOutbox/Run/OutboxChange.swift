import Synchronization

/// An event of the queue in this process. Another process on the same file has its own.
public enum OutboxChange: Hashable, Sendable {
  case enqueued(QueuedIntent)
  /// A delivery begins.
  case sending(QueuedIntent)
  /// A delivery left the intent open; the next one is due after this time.
  case postponed(QueuedIntent, Duration)
  case ended(QueuedIntent, QueuedOutcome)
  /// A change could not be written, as when the disk is full, or an intent could not be read. It is tried again, and
  /// nothing is lost.
  case storageFailed(OutboxError)
}

extension QueueStore.End {
  /// The event of this end.
  var change: OutboxChange {
    guard let intent else {
      return .storageFailed(.unreadableIntent("It has no valid key, and ended without a name."))
    }
    return .ended(intent, outcome)
  }
}

/// The streams of all who observe a queue.
final class ChangeHub: Sendable {
  private struct State {
    var next = 0
    var observers: [Int: AsyncStream<OutboxChange>.Continuation] = [:]
  }

  private let state = Mutex(State())

  func stream() -> AsyncStream<OutboxChange> {
    // An observer that does not read loses the oldest changes, not the process' memory.
    let (stream, continuation) = AsyncStream.makeStream(
      of: OutboxChange.self, bufferingPolicy: .bufferingNewest(10_000))
    let id = state.withLock { state in
      state.next += 1
      state.observers[state.next] = continuation
      return state.next
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { $0.observers[id] = nil }
    }
    return stream
  }

  func send(_ change: OutboxChange) {
    for observer in state.withLock({ Array($0.observers.values) }) { observer.yield(change) }
  }
}
