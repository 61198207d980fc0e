import Idempotency
import NIOCore
import NIOPosix
import Synchronization
import Wire

/// One task's wait for the end of a record. The writer's thread wakes it, and the task resumes on its own executor.
public final class EmbeddedWatch: RecordWatch {
  private struct State {
    /// Whether an end came while nobody waited.
    var isSet = false
    var waiter: UnsafeContinuation<Void, Never>?
    /// The number of the current wait, which the timer of an earlier one does not end.
    var wait = 0
    var timer: Scheduled<Void>?
  }

  /// The maximum duration of one wait, after which its caller waits on.
  private static let longest = Milliseconds.seconds(24 * 3600)

  let id: RecordID
  private let registry: WatchRegistry
  private let state = Mutex(State())

  init(_ id: RecordID, in registry: WatchRegistry) {
    self.id = id
    self.registry = registry
  }

  public func changed(within span: Milliseconds) async {
    guard span > 0 else { return }
    await withUnsafeContinuation { continuation in
      let wait: Int? = state.withLock { state in
        invariant(state.waiter == nil, "a second task waits while one does")
        guard !state.isSet else {
          state.isSet = false
          return nil
        }
        state.waiter = continuation
        state.wait += 1
        return state.wait
      }
      guard let wait else { return continuation.resume() }
      startTimer(min(span, Self.longest), for: wait)
    }
  }

  public func cancel() {
    registry.remove(self)
    wake()
  }

  /// Ends the current wait; if there is none, the next one ends at once.
  public func wake() {
    let (waiter, timer) = state.withLock { state in
      defer { (state.waiter, state.timer) = (nil, nil) }
      if state.waiter == nil { state.isSet = true }
      return (state.waiter, state.timer)
    }
    timer?.cancel()
    waiter?.resume()
  }

  private func startTimer(_ span: Milliseconds, for wait: Int) {
    let loop = MultiThreadedEventLoopGroup.currentEventLoop ?? MultiThreadedEventLoopGroup.singleton.any()
    let timer = loop.scheduleTask(in: .milliseconds(span.count)) { self.timedOut(wait) }
    let isWaiting = state.withLock { state in
      guard state.wait == wait, state.waiter != nil else { return false }
      state.timer = timer
      return true
    }
    if !isWaiting { timer.cancel() }
  }

  private func timedOut(_ wait: Int) {
    let waiter: UnsafeContinuation<Void, Never>? = state.withLock { state in
      guard state.wait == wait else { return nil }
      defer { (state.waiter, state.timer) = (nil, nil) }
      return state.waiter
    }
    waiter?.resume()
  }
}

/// The tasks that wait for the end of a record, over all event loops of the process.
final class WatchRegistry: Sendable {
  private let watches = Mutex<[RecordID: [EmbeddedWatch]]>([:])

  func add(_ id: RecordID) -> EmbeddedWatch {
    let watch = EmbeddedWatch(id, in: self)
    watches.withLock { $0[id, default: []].append(watch) }
    return watch
  }

  func remove(_ watch: EmbeddedWatch) {
    watches.withLock { watches in
      guard var list = watches[watch.id] else { return }
      list.removeAll { $0 === watch }
      watches[watch.id] = list.isEmpty ? nil : list
    }
  }

  func wake(_ ids: [RecordID]) {
    guard !ids.isEmpty else { return }
    let woken = watches.withLock { watches in
      watches.isEmpty ? [] : ids.flatMap { watches[$0] ?? [] }
    }
    for watch in woken { watch.wake() }
  }

  /// The number of waiting tasks.
  var count: Int { watches.withLock { $0.values.reduce(0) { $0 + $1.count } } }
}
