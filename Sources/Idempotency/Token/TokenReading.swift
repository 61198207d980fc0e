/// The reason why a request's token names no caller.
public enum TokenFault: Error, Hashable, Sendable, CaseIterable {
  /// The token's field or cookie occurs twice.
  case repeated
  /// The field has another scheme than `Bearer` and `DPoP`.
  case otherScheme
  /// The token is not a signed one in compact form, or a claim that is checked has an impossible type.
  case malformed
  /// No known key of an allowed algorithm has made the signature.
  case untrusted
  case expired
  /// The time of `nbf` has not come.
  case premature
  /// Another issuer made the token, or it is for another audience.
  case foreign
  /// The keys are not known yet, so that nothing can be verified.
  case keysMissing

  /// The name of the reason in logs and metrics.
  public var label: String {
    switch self {
    case .repeated: "repeated"
    case .otherScheme: "other_scheme"
    case .malformed: "malformed"
    case .untrusted: "untrusted"
    case .expired: "expired"
    case .premature: "premature"
    case .foreign: "foreign"
    case .keysMissing: "keys_missing"
    }
  }
}

/// The result of reading a request's token.
public enum TokenReading: Sendable {
  /// There is no token, or none was looked for.
  case absent
  case verified(VerifiedToken)
  case refused(TokenFault)
}
