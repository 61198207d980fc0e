import Wire

/// The caller of a request: the values of the parts that its route names, encoded so that no two callers are equal.
public struct Caller: Hashable, Sendable {
  /// The encoded parts. Each consists of its kind, its name, whether it is present, and its value; every text follows
  /// its length.
  public let framed: [UInt8]

  /// Hashes all bytes at once. The standard library's hash of an array takes ten times as long, one by one.
  public func hash(into hasher: inout Hasher) { framed.withUnsafeBytes { hasher.combine(bytes: $0) } }

  /// A keyed digest of the caller, for logs.
  public func digestText(by digests: LogDigests) -> String { digests.text(framed) }
}

extension Caller {
  /// The kind of a part. The numbers enter every record's id and must never change.
  enum Kind: UInt8 {
    case header = 1
    case cookie = 2
    case address = 3
    case clientCertificate = 5
    case query = 6
    case json = 7
    case jwt = 8
    case basicUser = 9
    case signingKey = 10
  }

  /// Encodes parts one after the other.
  struct Builder {
    // Most callers are one token and fit into the reserved capacity.
    private var framed: [UInt8] = []

    init() { framed.reserveCapacity(96) }

    var caller: Caller { Caller(framed: framed) }

    mutating func part(_ kind: Kind, name: String, value: UnsafeRawBufferPointer?) {
      framed.append(kind.rawValue)
      framed.appendLength(name.utf8.count)
      framed.append(contentsOf: name.utf8)
      framed.append(value == nil ? 0 : 1)
      guard let value else { return }
      framed.appendLength(value.count)
      framed.append(contentsOf: value)
    }
  }
}

extension [UInt8] {
  /// Appends a length in seven bits per byte, the lowest first.
  mutating func appendLength(_ length: Int) {
    var rest = UInt64(length)
    while rest > 0x7F {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }
}

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

/// The properties of a connection that identify the client at its other end, with the tokens of its request.
public struct CallerPeer: Sendable {
  /// The client's IP address without port, as far as it is trusted; `nil` if there is none or it is unknown.
  public var address: String?
  /// The identity in the certificate with which the client authenticated; `nil` if it has none.
  public var certificate: CertificateIdentity?
  /// The token in the `Authorization` of the request at hand, once it has been verified.
  public var token = TokenReading.absent
  /// Those in other places.
  private var otherTokens: [TokenPlace: TokenReading] = [:]

  public init(address: String?, certificate: CertificateIdentity? = nil) {
    self.address = address
    self.certificate = certificate
  }

  public func token(at place: TokenPlace) -> TokenReading {
    place == .authorization ? token : otherTokens[place] ?? .absent
  }

  public mutating func set(_ reading: TokenReading, at place: TokenPlace) {
    if place == .authorization { token = reading } else { otherTokens[place] = reading }
  }
}

/// The names in a client's verified certificate, which stay the same when the certificate is renewed.
public struct CertificateIdentity: Hashable, Sendable {
  /// The subject's distinguished name in the form of RFC 4514; `nil` if there is none.
  public var subject: String?
  /// The subject's alternative names of the first kind present, each with its kind before it: `uri:`, `dns:` or
  /// `email:`. They are sorted, and none contains a NUL.
  public var names: [String]
  /// The configured name of the authority that the certificate was verified by; `nil` if it has none. Two authorities
  /// may give the same names to different clients.
  public var authority: String?

  public init(subject: String?, names: [String], authority: String? = nil) {
    self.subject = subject
    self.names = names
    self.authority = authority
  }

  /// The names of the first kind that is there: URIs, else host names, else mail addresses.
  public static func names(uris: [String], hosts: [String], mails: [String]) -> [String] {
    let kinds = [
      uris.map { "uri:" + $0 }, hosts.map { "dns:" + $0.lowercased() }, mails.map { "email:" + $0 },
    ]
    return (kinds.first { !$0.isEmpty } ?? []).sorted()
  }

  /// The certificate's value for a part of the caller; `nil` if the certificate has none.
  func value(_ part: CallerPart.CertificatePart) -> String? {
    switch part {
    case .subject: subject
    case .san: names.isEmpty ? nil : names.joined(separator: "\0")
    case .identity: value(.san) ?? value(.subject).map { "subject:" + $0 }
    }
  }
}

/// The part of the value of `Authorization` that identifies the caller.
enum CredentialsReading: Equatable {
  /// The scheme is another one.
  case otherScheme
  case unreadable
  /// The bytes, which may be none.
  case found([UInt8])
}

/// Basic credentials (RFC 7617).
enum BasicCredentials {
  /// The user name in a value of `Authorization`: the bytes before the first colon, in whatever encoding they are.
  static func user(in value: UnsafeRawBufferPointer) -> CredentialsReading {
    guard let rest = value.after(scheme: "basic") else { return .otherScheme }
    guard let bytes = Base64.decode(rest), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
      return .unreadable
    }
    return .found(Array(bytes[..<colon]))
  }
}

/// The key of an AWS Signature Version 4 in `Authorization`, with the region and the service that it signs for.
enum SigningKey {
  /// Reads `AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, …` as `KEY/REGION/SERVICE`.
  ///
  /// The key may itself contain slashes, so that the parts are counted from the end.
  static func read(_ value: UnsafeRawBufferPointer) -> CredentialsReading {
    guard let rest = value.after(scheme: "aws4-hmac-sha256") else { return .otherScheme }
    var found: [UInt8]?
    for parameter in rest.split(separator: ASCII.comma) {
      let text = MessageHead.trimmed(parameter[...])
      guard text.starts(with: "Credential=".utf8) else { continue }
      // Readers differ in which of two they take.
      guard found == nil, let key = scope(Array(text.dropFirst("Credential=".utf8.count))) else {
        return .unreadable
      }
      found = key
    }
    return found.map { .found($0) } ?? .unreadable
  }

  /// The key, the region and the service of a credential's scope; `nil` if it has another form.
  private static func scope(_ text: [UInt8]) -> [UInt8]? {
    let slash = UInt8(ascii: "/")
    let parts = text.split(separator: slash, omittingEmptySubsequences: false)
    guard parts.count >= 5, parts[parts.count - 1].elementsEqual("aws4_request".utf8),
      parts[parts.count - 4].count == 8, parts[parts.count - 4].allSatisfy(ASCII.isDigit),
      !parts[parts.count - 3].isEmpty, !parts[parts.count - 2].isEmpty
    else { return nil }
    let key = Array(parts[..<(parts.count - 4)].joined(separator: [slash]))
    guard let first = key.first, first != slash else { return nil }
    return key + [slash] + parts[parts.count - 3] + [slash] + parts[parts.count - 2]
  }

  /// Whether a request can have this key, region and service.
  static func isOne(_ text: String) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count >= 3 && !parts[parts.count - 1].isEmpty && !parts[parts.count - 2].isEmpty
      && text.utf8.first != UInt8(ascii: "/")
      && text.utf8.allSatisfy { $0 > ASCII.space && $0 < 0x7F && $0 != ASCII.comma }
  }
}

extension UnsafeRawBufferPointer {
  /// The credentials after a scheme, which is given in lower case; `nil` for another scheme.
  fileprivate func after(scheme: StaticString) -> UnsafeRawBufferPointer? {
    let end = firstIndex { $0 == ASCII.space || $0 == ASCII.tab } ?? count
    guard ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: self[..<end]), scheme) else { return nil }
    return UnsafeRawBufferPointer(rebasing: self[end...].drop { $0 == ASCII.space || $0 == ASCII.tab })
  }
}

/// The encoding of RFC 4648, section 4, with or without its padding.
private enum Base64 {
  /// The encoded bytes; `nil` for another character, an impossible length, or padding that does not fit.
  static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    let padding = UInt8(ascii: "=")
    let end = text.firstIndex(of: padding) ?? text.count
    let padded = text.count - end
    guard padded == 0 || padded <= 2 && text.count % 4 == 0 && text[end...].allSatisfy({ $0 == padding })
    else {
      return nil
    }
    // Its other alphabet differs in two characters.
    var plain: [UInt8] = []
    plain.reserveCapacity(end)
    for byte in text[..<end] {
      switch byte {
      case UInt8(ascii: "+"): plain.append(UInt8(ascii: "-"))
      case UInt8(ascii: "/"): plain.append(UInt8(ascii: "_"))
      case UInt8(ascii: "-"), UInt8(ascii: "_"): return nil
      default: plain.append(byte)
      }
    }
    return Base64URL.decode(plain[...])
  }
}
