import Idempotency
import Synchronization

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
