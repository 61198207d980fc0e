import Idempotency
import NIOCore
import Wire

/// One keyed request, identified: what the store is asked for and the backend is sent.
///
/// A class, so that it is not copied into the frame of every step that a request takes.
final class KeyedCall: Sendable {
  let route: Route
  let target: RequestTarget
  let body: ByteBuffer
  let id: RecordID

  init(route: Route, target: RequestTarget, body: ByteBuffer, id: RecordID) {
    self.route = route
    self.target = target
    self.body = body
    self.id = id
  }

  func fingerprint(by recipe: Recipe, head: MessageHead) -> Fingerprint {
    .make(
      recipe: recipe, head: head, method: head.slice(head.methodRange), path: target.path,
      query: target.query,
      body: body)
  }

  /// The bytes from which a fingerprint is made.
  var readBytes: Int { body.readableBytes + (target.query?.readableBytes ?? 0) }

  func claimRequest(owner: OwnerToken, fingerprint: Fingerprint) -> ClaimRequest {
    let takeOver: ClaimRequest.TakeOver =
      switch route.policy.onUnknown {
      case .hold: .never
      case .retry: .afterSettle(route.policy.upstream.settle)
      }
    return ClaimRequest(
      id: id, owner: owner, fingerprint: fingerprint, lease: route.policy.lease, takeOver: takeOver,
      unknownRetention: route.policy.unknownRetention, remember: route.policy.remember)
  }

  /// The body as it is sent: a request that came without one goes without one.
  func upstreamBody(of delivery: Delivery) -> RequestBody {
    delivery.request.framing == .none ? .none : .whole(body)
  }
}

extension ClaimRequest {
  /// The claim that the store may have granted without our hearing of it. It was never used.
  func unusedClaim() -> Claim {
    Claim(
      id: id, owner: owner, fingerprint: fingerprint, attempt: 0, firstSeen: StoreInstant(milliseconds: 0),
      followsUnknown: false, onlyRejectedSoFar: false, lease: lease, unknownRetention: unknownRetention,
      remember: remember, askedAt: BootInstant(nanoseconds: 0))
  }
}
