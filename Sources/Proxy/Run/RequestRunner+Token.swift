import Idempotency
import Wire

/// The tokens of a request, where a caller is known by one.
extension RequestRunner {
  /// The client of the request, with its tokens in the places in which they are needed; `nil` if one has to be verified
  /// first. A token that was verified or refused a short time ago costs a look-up by its digest.
  func identifiedPeer(tokensAt places: [TokenPlace]) -> CallerPeer? {
    var peer = delivery.peer.caller
    for place in places {
      guard let token = knownToken(at: place) else { return nil }
      peer.set(token, at: place)
    }
    return peer
  }

  /// The token in a place; `nil` if it has to be verified.
  private func knownToken(at place: TokenPlace) -> TokenReading? {
    if let token = delivery.tokens[place] { return token }
    switch head.token(at: place) {
    case .absent: return .absent
    case .refused(let fault): return .refused(fault)
    case .found(let text): return configuration.tokens?.known(text)
    }
  }

  /// Verifies the tokens that are not known beside the loop, one after the other, and waits for new keys where the key of
  /// one is unknown.
  @inline(never)
  func verifyTokens(at places: [TokenPlace]) async {
    for place in places where knownToken(at: place) == nil {
      delivery.tokens[place] = await verifiedToken(at: place)
    }
  }

  private func verifiedToken(at place: TokenPlace) async -> TokenReading {
    guard case .found(let token) = head.token(at: place), let tokens = configuration.tokens else {
      return .refused(.keysMissing)
    }
    var check = await check(token, by: tokens)
    if case .keyUnknown(_, let edition) = check, await tokens.awaitNewKeys(since: edition) {
      check = await self.check(token, by: tokens)
    }
    tokens.remember(check, of: token)
    return check.reading
  }

  private func check(_ token: [UInt8], by tokens: any TokenVerifier) async -> TokenCheck {
    await worker.bodies.verify(tokens.cost(of: token), of: delivery.connection) { tokens.check(token) }
  }
}
