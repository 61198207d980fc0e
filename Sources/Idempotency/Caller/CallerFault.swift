/// The reason why a caller cannot be determined.
public enum CallerFault: Hashable, Sendable {
  /// The part is missing or empty.
  case missing(CallerPart)
  /// The part occurs twice, and it is unknown which one the backend uses.
  case repeated(CallerPart)
  /// The part's value cannot be read: its percent-encoding is wrong, its JSON value is neither a string nor an integer,
  /// or the body is not JSON.
  case unreadable(CallerPart)
  /// `Authorization` has a scheme whose credentials may differ between retries, so that a retry would be another
  /// caller.
  case unknownScheme
  /// The request's token names no caller.
  case token(TokenFault)

  /// Whether credentials in `Authorization` are of another scheme than the part takes, so that an alternative which
  /// reads the field, too, may take them.
  var isOfScheme: Bool { self == .unknownScheme || self == .token(.otherScheme) }

  /// The value of `WWW-Authenticate` if the fault is in `Authorization`, so that other credentials there would identify
  /// the caller. A token that is refused is named as RFC 6750 (section 3.1) demands.
  var challenge: String? {
    switch self {
    case .missing(let part), .repeated(let part), .unreadable(let part):
      part.alternatives.contains(where: \.isInAuthorization) ? "Bearer" : nil
    case .unknownScheme, .token(.otherScheme): "Bearer"
    // The token is not at fault, so the challenge does not call it invalid.
    case .token(.keysMissing): "Bearer"
    case .token: #"Bearer error="invalid_token""#
    }
  }
}

extension CallerPart {
  /// The part's description in a sentence for a client. It contains words of the configuration only, never a value.
  var place: String {
    switch self {
    case .header(let name): "the \(name) header field"
    case .cookie(let name): "the cookie \(name)"
    case .query(let name): "the query parameter \(name)"
    case .json(let pointer): "the JSON body's member \(pointer)"
    case .jwt(let claim): "a token with the claim \(claim)"
    case .address: "an address that is known here"
    case .clientCertificate(.identity): "a client certificate"
    case .clientCertificate(.subject): "a client certificate with a subject"
    case .clientCertificate(.san): "a client certificate with alternative names"
    case .optional(let part): part.place
    case .either(let parts): parts.map(\.place).joined(separator: ", or by ")
    }
  }
}
