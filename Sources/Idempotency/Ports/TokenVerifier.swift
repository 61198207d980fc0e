/// The keys by which tokens are verified, with a memory of verified tokens.
public protocol TokenVerifier: Sendable {
  /// The identity in a token that was verified before and is still accepted; `nil` if it has to be checked.
  func known(_ token: [UInt8]) -> VerifiedToken?

  /// Checks a token by the keys that are known. Costs up to a tenth of a millisecond, and must not run on an event
  /// loop.
  func check(_ token: [UInt8]) -> TokenCheck

  /// Waits until the keys have been fetched again, if they may be fetched now.
  ///
  /// - Parameter edition: The edition of the keys that were known.
  /// - Returns: Whether the keys are others now, so that another check may have another result.
  func awaitNewKeys(since edition: Int) async -> Bool
}

/// The result of checking a token.
public enum TokenCheck: Sendable {
  case verified(VerifiedToken)
  case refused(TokenFault)
  /// Refused by the keys of this edition; the signature may be that of a newer one.
  case keyUnknown(TokenFault, edition: Int)

  public var reading: TokenReading {
    switch self {
    case .verified(let token): .verified(token)
    case .refused(let fault), .keyUnknown(let fault, _): .refused(fault)
    }
  }
}
