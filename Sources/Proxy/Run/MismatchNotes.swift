import Idempotency
import Platform
import Synchronization
import Telemetry

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

/// The explanation of mismatches, for operators alone.
extension RequestRunner {
  /// Logs and notes how the refused payload differs from the first one of its key, if the record can say so.
  @inline(never)
  func explain(_ request: ClaimRequest, of call: KeyedCall) async {
    let recipe = request.fingerprint.recipe
    guard let members = recipe.members else { return }
    let (head, digests) = (head, environment.digests)
    let compare: @Sendable () -> PayloadDifference? = {
      members.difference(to: call.body, head: head, recipe: recipe, id: call.id, by: digests)
    }
    let difference: PayloadDifference?
    let bytes = 2 * call.readBytes(by: recipe, head: head)
    if worker.bodies.mayReadOnLoop(bytes) {
      difference = compare()
    } else {
      difference = await worker.bodies.read(bytes, of: delivery.connection, compare)
    }
    let text = difference?.text ?? "(no JSON object)"
    delivery.logEntry.differs = text
    environment.mismatches.note(text, of: request.id)
  }
}
