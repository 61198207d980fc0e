import Idempotency

/// Claims that have failed, on routes that may run requests without the store.
extension RequestRunner {
  /// Decides on a reply, once it is known whether the store answers anybody, where that counts.
  @inline(never)
  func decide(
    afterAsking reply: ClaimReply, to request: ClaimRequest, of call: KeyedCall
  ) async -> ClaimLifecycle.ClaimedAction {
    let isDown = call.lifecycle.mayOpen(after: reply) ? await worker.store.isDown(for: request.id) : false
    return decide(on: reply, to: request, of: call, isDown: isDown)
  }
}
