import Idempotency
import Loop
import Wire

/// The run of a request without a record, on a route whose owner wants that while the store is away.
extension RequestRunner {
  /// Forwards the request and gives the client the response as it comes. Until the end the process knows the record as
  /// at work; after it as unknown where the backend may have run the request and the response was lost.
  ///
  /// - Parameter mayOwn: whether the store may have granted the claim all the same.
  @inline(never)
  func passUnprotected(_ call: KeyedCall, _ request: ClaimRequest, mayOwn: Bool) async throws(Problem) {
    var isLost = true
    defer {
      environment.known.change(request.id) {
        $0 = $0?.ended(unprotected: request, isLost: isLost, now: $1)
      }
    }
    do throws(Problem) {
      if let head = try await passThrough(call.target, by: call.route, label: .unprotected, id: call.id) {
        isLost = call.route.policy.leavesUnknown(head)
      }
    } catch {
      if error.code == .upstreamUnreachable {
        isLost = false
        if mayOwn { giveBack(request) }
      }
      throw error
    }
  }
}

extension Route {
  /// Whether its requests may run without the store.
  var mayRunUnprotected: Bool { policy.onStoreFailure == .open }
}

extension RoutePolicy {
  /// Whether a complete response says that nobody knows what the backend did.
  fileprivate func leavesUnknown(_ head: MessageHead) -> Bool {
    (Steering(of: head).outcome ?? outcomes[head.status]) == .unknown
  }
}
