/// Where a request's idempotency key may stand.
public enum KeySource: Hashable, Sendable {
  /// A request field, its name in lower case.
  case header(String)
  /// A parameter of the query.
  case query(String)
  /// A member of a JSON body, by JSON pointer (RFC 6901).
  case json(String)
  /// A field of an `application/x-www-form-urlencoded` or `multipart/form-data` body.
  case form(String)

  /// As the configuration names it.
  public var text: String {
    switch self {
    case .header(let name): "header:\(name)"
    case .query(let name): "query:\(name)"
    case .json(let pointer): "json:\(pointer)"
    case .form(let name): "form:\(name)"
    }
  }

  /// Whether the body has to be read before the key is known.
  public var isInBody: Bool {
    switch self {
    case .header, .query: false
    case .json, .form: true
    }
  }
}

/// A route's rules for its key.
public struct KeyPolicy: Hashable, Sendable {
  public enum Format: String, Sendable, CaseIterable { case any, uuid }

  /// The first source that yields a key counts.
  public var from: [KeySource] = [.header("idempotency-key")]
  public var format: Format = .any
  /// In bytes.
  public var minLength = 1
  public var maxLength = 255

  public init() {}
}

/// One part of who the caller is.
public enum CallerPart: Hashable, Sendable {
  /// A request field, its name in lower case.
  case header(String)
  case cookie(String)
  /// The address of the connection's peer.
  case address
  /// Whom the client's certificate names.
  case clientCertificate(CertificatePart)

  /// What of a certificate counts: the text after `client_certificate:` in the configuration.
  public enum CertificatePart: String, Sendable, CaseIterable {
    /// The alternative names, or the subject where there are none.
    case identity = ""
    case subject, san
  }
}

/// A route's rule for its caller.
public struct CallerPolicy: Hashable, Sendable {
  public enum Anonymous: String, Sendable, CaseIterable { case refuse, allow }

  public var parts: [CallerPart]
  /// What a missing part means.
  public var anonymous: Anonymous = .refuse
  /// Schemes of `Authorization`, in lower case, whose credentials stay the same over retries, besides the known ones.
  public var schemes: [String] = []

  public init(parts: [CallerPart], anonymous: Anonymous = .refuse, schemes: [String] = []) {
    self.parts = parts
    self.anonymous = anonymous
    self.schemes = schemes
  }
}
