import NIOCore
import Wire

/// The reason why a request's token names no caller.
public enum TokenFault: Error, Hashable, Sendable, CaseIterable {
  /// `Authorization` occurs twice.
  case repeated
  /// `Authorization` has another scheme than `Bearer` and `DPoP`.
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

/// The result of a search for a bearer token (RFC 6750, section 2.1), or for one that is bound to a key (RFC 9449,
/// section 7.1), whose proof is left to the backend.
public enum BearerToken: Sendable, Equatable {
  case absent
  case found([UInt8])
  case refused(TokenFault)
}

extension MessageHead {
  /// The token in `Authorization`.
  public var bearerToken: BearerToken {
    switch find("authorization") {
    case .absent: .absent
    case .repeated: .refused(.repeated)
    case .once(let range): withBytes(range, Self.bearerToken)
    }
  }

  private static func bearerToken(_ value: UnsafeRawBufferPointer) -> BearerToken {
    guard !value.isEmpty else { return .absent }
    let scheme = value.prefix { $0 != ASCII.space && $0 != ASCII.tab }
    let name = UnsafeRawBufferPointer(rebasing: scheme)
    guard ASCII.equalsIgnoringCase(name, "bearer") || ASCII.equalsIgnoringCase(name, "dpop") else {
      return .refused(.otherScheme)
    }
    let token = value[scheme.endIndex...].drop { $0 == ASCII.space || $0 == ASCII.tab }
    return token.isEmpty ? .refused(.malformed) : .found(Array(token))
  }
}
