/// Why a caller is not known.
public enum CallerFault: Hashable, Sendable {
  /// The part is not there, or is empty.
  case missing(CallerPart)
  /// The part is there twice, and nobody can tell which one the backend believes.
  case repeated(CallerPart)
  /// `Authorization` has a scheme that is not known to stay the same over retries: a retry would be another caller.
  case unknownScheme

  /// Whether other credentials in `Authorization` would name the caller.
  var isOfAuthorization: Bool {
    switch self {
    case .missing(let part), .repeated(let part): part == .header("authorization")
    case .unknownScheme: true
    }
  }
}

extension CallerPart {
  /// The part in a sentence for a client; only the configuration's words, never a value.
  var place: String {
    switch self {
    case .header(let name): "the \(name) header field"
    case .cookie(let name): "the cookie \(name)"
    case .address: "an address that is known here"
    case .clientCertificate(.identity): "a client certificate"
    case .clientCertificate(.subject): "a client certificate with a subject"
    case .clientCertificate(.san): "a client certificate with alternative names"
    }
  }
}
