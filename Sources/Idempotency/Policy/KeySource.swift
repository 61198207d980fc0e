import NIOCore
import Wire

/// A place for a request's idempotency key.
public enum KeySource: Hashable, Sendable {
  /// A request field, with its name in lower case.
  case header(String)
  /// A parameter of the query.
  case query(String)
  /// A member of a JSON body, by JSON pointer (RFC 6901).
  case json(String)
  /// A field of an `application/x-www-form-urlencoded` or `multipart/form-data` body.
  case form(String)
  /// The request's fingerprint, for clients that send no key. Every request has one.
  case payload
  /// Several of the sources above, which make one key together. It yields none unless each of them does.
  indirect case composite([KeySource])

  /// The source in the notation of the configuration. A composite one is a JSON array, so that no two look alike.
  public var text: String {
    switch self {
    case .header(let name): "header:\(name)"
    case .query(let name): "query:\(name)"
    case .json(let pointer): "json:\(pointer)"
    case .form(let name): "form:\(name)"
    case .payload: "payload"
    case .composite(let parts): "[\(parts.map(\.text.jsonString).joined(separator: ","))]"
    }
  }

  /// The parts of a composite source, or the source itself.
  public var parts: [KeySource] {
    if case .composite(let parts) = self { parts } else { [self] }
  }

  var isHeader: Bool {
    if case .header = self { true } else { false }
  }

  /// Whether a part of it is in a JSON body.
  public var readsJSON: Bool {
    parts.contains { if case .json = $0 { true } else { false } }
  }

  /// Whether the body has to be read before the key is known.
  public var isInBody: Bool {
    switch self {
    case .header, .query: false
    // The fingerprint contains the body.
    case .json, .form, .payload: true
    case .composite(let parts): parts.contains(where: \.isInBody)
    }
  }
}

/// The rules of a route for its keys.
public struct KeyPolicy: Hashable, Sendable {
  /// The characters of a key: any visible ASCII, or those of a UUID.
  public enum Format: String, Sendable, CaseIterable { case any, uuid }
  /// The treatment of keys that name nothing, such as `undefined`: refused, or taken like any other.
  public enum Placeholders: String, Sendable, CaseIterable { case refuse, accept }

  /// The sources in the order of their precedence: the first that yields a key counts.
  public var from: [KeySource] = [.header("idempotency-key")]
  public var format: Format = .any
  /// The minimum length in bytes, of each part of a composite key.
  public var minLength = 1
  /// The maximum length in bytes, of each part of a composite key.
  public var maxLength = 255
  /// The treatment of a key that names nothing, or of a part of a composite key that does.
  public var placeholders: Placeholders = .refuse

  public init() {}
}

/// One of the parts that identify a caller.
public enum CallerPart: Hashable, Sendable {
  /// A request field, with its name in lower case.
  case header(String)
  case cookie(String)
  /// A parameter of the query.
  case query(String)
  /// A member of a JSON body, by JSON pointer (RFC 6901).
  case json(String)
  /// A claim of the request's verified token, by its name, or by a JSON pointer if that begins with a slash. The
  /// token's issuer belongs to it, and so does the token's place.
  case jwt(String, at: TokenPlace = .authorization)
  /// The user name of Basic credentials (RFC 7617), without their password.
  case basicUser
  /// The key id, the region and the service of an AWS Signature Version 4 in `Authorization`, without its date and its
  /// signature, which are others in each delivery.
  case signingKey
  /// The client's IP address, as `trusted_proxies` and the PROXY header determine it.
  case address
  /// The identity in the client's certificate.
  case clientCertificate(CertificatePart)
  /// The first of several parts that the request has, each of which is none of this kind. It is encoded as that very
  /// part, and as the first of them where the request has none.
  case either([CallerPart])
  /// A field, a cookie, a parameter, a member or a claim that a request may lack, while it has the others. It is encoded
  /// as that part, or as that part's absence.
  indirect case optional(CallerPart)

  /// The part of a certificate that identifies the caller. The raw value is the text after `client_certificate:` in the
  /// configuration.
  public enum CertificatePart: String, Sendable, CaseIterable {
    /// The alternative names, or the subject if there are none.
    case identity = ""
    case subject, san

    /// The part's name in a caller, with that of the authority if it has one.
    func name(under authority: String?) -> String {
      authority.map { $0.isEmpty ? rawValue : "\(rawValue)@\($0)" } ?? rawValue
    }
  }

  /// The parts of which it is the first that the request has: itself alone for all but alternatives.
  public var alternatives: [CallerPart] {
    switch self {
    case .either(let parts): parts
    case .optional(let part): [part]
    default: [self]
    }
  }

  /// Whether requests may lack the part wherever they have to have the others.
  public var isOptional: Bool {
    if case .optional = self { true } else { false }
  }

  /// Whether the part is, or may be, one of the client's certificate.
  public var isCertificate: Bool {
    alternatives.contains { if case .clientCertificate = $0 { true } else { false } }
  }

  /// The places of the tokens of which the part is, or may be, a claim.
  public var tokenPlaces: [TokenPlace] {
    alternatives.compactMap { if case .jwt(_, let place) = $0 { place } else { nil } }
  }

  /// Whether the part is, or may be, a claim of the request's token.
  public var isOfToken: Bool {
    alternatives.contains { if case .jwt = $0 { true } else { false } }
  }

  /// Whether the body may have to be read before the caller is known.
  var isInBody: Bool {
    alternatives.contains { if case .json = $0 { true } else { false } }
  }
}

/// The rules of a route for its callers.
public struct CallerPolicy: Hashable, Sendable {
  /// The treatment of a request that lacks a part of its caller: refused, or served as an anonymous caller's.
  public enum Anonymous: String, Sendable, CaseIterable { case refuse, allow }

  /// The parts in the order of their encoding, which is a part of every record's id. Without parts, all clients are one
  /// caller.
  public var parts: [CallerPart]
  /// The treatment of a missing part.
  public var anonymous: Anonymous = .refuse
  /// Schemes of `Authorization`, in lower case, whose credentials stay the same over retries, in addition to the
  /// built-in ones.
  public var schemes: [String] = []
  /// The issuer of the route's tokens if the configuration demands one, for operators who name a caller.
  public var issuer: String?

  public init(parts: [CallerPart], anonymous: Anonymous = .refuse, schemes: [String] = []) {
    self.parts = parts
    self.anonymous = anonymous
    self.schemes = schemes
  }

  /// Whether all clients are one caller: `caller: {shared: true}`.
  public var isShared: Bool { parts.isEmpty }

  /// The parts with the alternatives one by one.
  public var alternatives: [CallerPart] { parts.flatMap(\.alternatives) }

  /// Whether the parts only state who the client is, and none of them is a credential: an account in the query or the
  /// body, or a user name, which everybody may write there. Of alternatives everybody may choose one, and leave out what is optional.
  public var provesNothing: Bool { !isShared && parts.allSatisfy(\.provesNothing) }
}

extension CallerPart {
  fileprivate var provesNothing: Bool {
    switch self {
    case .query(let name), .json(let name):
      !["auth", "key", "secret", "sess", "sig", "token"].contains { name.lowercased().contains($0) }
    // Neither the password nor the signature is verified here.
    case .basicUser, .signingKey: true
    case .header, .cookie, .jwt, .address, .clientCertificate: false
    case .either(let parts): parts.contains(where: \.provesNothing)
    case .optional: true
    }
  }
}

/// The form in which a backend gets the fields that hold keys.
public enum KeyForwarding: Hashable, Sendable {
  /// As the client sent them.
  case keep
  /// Not at all, for backends that repeat a request because it has such a field.
  case drop
  /// Under another name, in lower case.
  case rename(String)
}

extension RoutePolicy {
  /// The fields that are by themselves a source of keys, in lower case.
  public var keyFields: [String] {
    key.from.compactMap { source in
      if case .header(let name) = source { name } else { nil }
    }
  }

  /// The fields that do not go to the backend as the client sent them; `nil` if all do.
  var withheldFields: FieldOmission? {
    switch forwardKey {
    case .keep: nil
    case .drop: FieldOmission(FieldNameList(keyFields))
    // A client's own field of the new name would pass for the key.
    case .rename(let name): FieldOmission(FieldNameList(keyFields + [name]))
    }
  }

  /// Writes the field that takes the place of the key's, if the route renames it.
  public func writeRenamedKey(of head: MessageHead, into out: inout ByteBuffer) {
    guard case .rename(let name) = forwardKey else { return }
    for field in keyFields.lazy.flatMap(head.fields(named:)) where !field.valueRange.isEmpty {
      out.writeString(name)
      out.writeLiteral(": ")
      out.writeImmutableBuffer(head.slice(field.valueRange))
      return out.writeLiteral("\r\n")
    }
  }
}
