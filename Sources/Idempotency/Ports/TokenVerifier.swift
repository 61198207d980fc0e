/// The keys by which tokens are verified, with a memory of verified tokens.
public protocol TokenVerifier: Sendable {
  /// The reading of a token that was verified before and is still accepted, or was refused a moment ago; `nil` if it has
  /// to be checked.
  func known(_ token: [UInt8]) -> TokenReading?

  /// The time that a check takes at most, in microseconds: the keys to try, by the algorithm that the token states.
  /// Costs some microseconds.
  func cost(of token: [UInt8]) -> Int

  /// Checks a token by the keys that are known. Costs up to a tenth of a millisecond, and must not run on an event
  /// loop.
  func check(_ token: [UInt8]) -> TokenCheck

  /// Notes the result of a token's check if the token is refused for the next seconds, unless the keys change.
  func remember(_ check: TokenCheck, of token: [UInt8])

  /// Waits until the keys have been fetched again, if they may be fetched now.
  ///
  /// - Parameter edition: The edition of the keys that were known.
  /// - Returns: Whether the keys are others now, so that another check may have another result.
  func awaitNewKeys(since edition: Int) async -> Bool
}

/// The result of checking a token.
public enum TokenCheck: Sendable {
  case verified(VerifiedToken)
  /// Refused by the keys of this edition, or whatever the keys.
  case refused(TokenFault, edition: Int)
  /// Refused by the keys of this edition; the signature may be that of a newer one.
  case keyUnknown(TokenFault, edition: Int)

  public var reading: TokenReading {
    switch self {
    case .verified(let token): .verified(token)
    case .refused(let fault, _), .keyUnknown(let fault, _): .refused(fault)
    }
  }
}
