import Idempotency
import Synchronization

/// Counts the duplicates of each key that wait in this process, so that no key holds more than its share.
final class WaitingRoom: Sendable {
  private let counts = Mutex<[RecordID: Int]>([:])

  /// Lets one more wait, unless `most` do already.
  func enter(_ id: RecordID, most: Int) -> Bool {
    counts.withLock { counts in
      let count = counts[id, default: 0]
      guard count < most else { return false }
      counts[id] = count + 1
      return true
    }
  }

  func leave(_ id: RecordID) {
    counts.withLock { counts in
      let count = counts[id, default: 0]
      counts[id] = count > 1 ? count - 1 : nil
    }
  }
}
