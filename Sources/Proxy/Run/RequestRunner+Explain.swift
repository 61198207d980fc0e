import Idempotency
import Telemetry

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
