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
    if worker.bodies.mayReadOnLoop(2 * call.readBytes) {
      difference = compare()
    } else {
      difference = await worker.bodies.read(2 * call.readBytes, of: delivery.connection, compare)
    }
    let text = difference?.text ?? "(no JSON object)"
    delivery.logEntry.differs = text
    environment.mismatches.note(text, of: request.id)
  }
}
