import Idempotency
import Wire

/// The token of a request, where a caller is known by one.
extension RequestRunner {
  /// The client of the request, with its token if one is needed; `nil` if the token has to be verified first. A token
  /// that was verified or refused a short time ago costs a look-up by its digest.
  func identifiedPeer(isTokenNeeded: Bool) -> CallerPeer? {
    var peer = delivery.peer.caller
    guard isTokenNeeded else { return peer }
    if let token = delivery.token {
      peer.token = token
      return peer
    }
    switch head.bearerToken {
    case .absent: break
    case .refused(let fault): peer.token = .refused(fault)
    case .found(let text):
      guard let known = configuration.tokens?.known(text) else { return nil }
      peer.token = known
    }
    return peer
  }

  /// Verifies the token beside the loop, and waits for new keys where its own is unknown.
  @inline(never)
  func verifyToken() async {
    guard case .found(let token) = head.bearerToken, let tokens = configuration.tokens else {
      delivery.token = .refused(.keysMissing)
      return
    }
    var check = await check(token, by: tokens)
    if case .keyUnknown(_, let edition) = check, await tokens.awaitNewKeys(since: edition) {
      check = await self.check(token, by: tokens)
    }
    delivery.token = check.reading
    tokens.remember(check, of: token)
  }

  private func check(_ token: [UInt8], by tokens: any TokenVerifier) async -> TokenCheck {
    await worker.bodies.verify(tokens.cost(of: token), of: delivery.connection) { tokens.check(token) }
  }
}
