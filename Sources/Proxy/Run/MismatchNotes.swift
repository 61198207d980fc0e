import Idempotency
import Platform
import Synchronization

/// The payloads that this process has refused lately and that its records could explain, for operators.
public final class MismatchNotes: Sendable {
  public struct Note: Sendable {
    /// The time of the refusal, in milliseconds since 1970.
    public let at: Int64
    /// The members by which the payload differed.
    public let differs: String
  }

  /// A note is half a kilobyte at most.
  private let notes = Mutex(AgingMap<RecordID, Note>(half: 512))

  public init() {}

  func note(_ differs: String, of id: RecordID) {
    let note = Note(at: WallClock.milliseconds(), differs: differs)
    notes.withLock { $0[id] = note }
  }

  /// The last refusal of a record's payload; `nil` if there was none, or it was long ago.
  public func last(of id: RecordID) -> Note? { notes.withLock { $0[id] } }
}
