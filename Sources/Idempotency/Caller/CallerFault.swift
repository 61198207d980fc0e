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
  /// `Authorization` has another scheme than that of the part.
  case otherScheme(CallerPart)
  /// The request's token in a place names no caller.
  case token(TokenFault, at: TokenPlace = .authorization)

  /// Whether credentials in `Authorization` are of another scheme than the part takes, so that an alternative which
  /// reads the field, too, may take them.
  var isOfScheme: Bool {
    switch self {
    case .unknownScheme, .otherScheme, .token(.otherScheme, at: .authorization): true
    default: false
    }
  }

  /// The value of `WWW-Authenticate` if the fault is in `Authorization`, so that other credentials there would identify
  /// the caller. A token that is refused is named as RFC 6750 (section 3.1) demands.
  var challenge: String? {
    switch self {
    case .missing(let part), .repeated(let part), .unreadable(let part), .otherScheme(let part):
      part.alternatives.lazy.compactMap(\.challenge).first
    case .unknownScheme, .token(.otherScheme, at: .authorization): "Bearer"
    // The token is not at fault, so the challenge does not call it invalid.
    case .token(.keysMissing, at: .authorization): "Bearer"
    case .token(_, at: .header), .token(_, at: .cookie): nil
    case .token: #"Bearer error="invalid_token""#
    }
  }
}

extension CallerPart {
  /// The challenge for credentials with this part; `nil` for a part outside `Authorization`.
  fileprivate var challenge: String? {
    switch self {
    case .basicUser: #"Basic realm="caller""#
    case .signingKey: "AWS4-HMAC-SHA256"
    default: isInAuthorization ? "Bearer" : nil
    }
  }

  /// The part's description in a sentence for a client. It contains words of the configuration only, never a value.
  var place: String {
    switch self {
    case .header(let name): "the \(name) header field"
    case .cookie(let name): "the cookie \(name)"
    case .query(let name): "the query parameter \(name)"
    case .json(let pointer): "the JSON body's member \(pointer)"
    case .jwt(let claim, at: .authorization): "a token with the claim \(claim)"
    case .jwt(let claim, let place): "a token with the claim \(claim) in \(place.description)"
    case .basicUser: "Basic credentials with a user name"
    case .signingKey: "an AWS4-HMAC-SHA256 signature with its Credential"
    case .address: "an address that is known here"
    case .clientCertificate(.identity): "a client certificate"
    case .clientCertificate(.subject): "a client certificate with a subject"
    case .clientCertificate(.san): "a client certificate with alternative names"
    case .optional(let part): part.place
    case .either(let parts): parts.map(\.place).joined(separator: ", or by ")
    }
  }
}
