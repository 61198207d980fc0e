import Idempotency
import Platform
import Synchronization

/// The payloads that this process has refused lately and that its records could explain, for operators.
///
/// Two halves stand for age: a note is written into the younger one, and when that is full the older one is dropped.
public final class MismatchNotes: Sendable {
  public struct Note: Sendable {
    /// The time of the refusal, in milliseconds since 1970.
    public let at: Int64
    /// The members by which the payload differed.
    public let differs: String
  }

  private struct State {
    var young: [RecordID: Note] = [:]
    var old: [RecordID: Note] = [:]
  }

  /// A note is half a kilobyte at most.
  private static let half = 512

  private let state = Mutex(State())

  public init() {}

  func note(_ differs: String, of id: RecordID) {
    let note = Note(at: WallClock.milliseconds(), differs: differs)
    state.withLock { state in
      state.young[id] = note
      guard state.young.count >= Self.half else { return }
      state.old = state.young
      state.young = [:]
    }
  }

  /// The last refusal of a record's payload; `nil` if there was none, or it was long ago.
  public func last(of id: RecordID) -> Note? { state.withLock { $0.young[id] ?? $0.old[id] } }
}
