/// The algorithms of signatures (RFC 7518, section 3.1; RFC 8037). `none` is not among them.
public enum TokenAlgorithm: String, Sendable, CaseIterable {
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case ps256 = "PS256"
  case ps384 = "PS384"
  case ps512 = "PS512"
  case es256 = "ES256"
  case es384 = "ES384"
  case es512 = "ES512"
  case eddsa = "EdDSA"
  case hs256 = "HS256"
  case hs384 = "HS384"
  case hs512 = "HS512"

  /// The minimum length of its secret in bytes (RFC 7518, section 3.2); `nil` if it has a public key. A public key must
  /// never serve as a secret, since everybody knows it.
  public var minSecretBytes: Int? {
    switch self {
    case .hs256: 32
    case .hs384: 48
    case .hs512: 64
    default: nil
    }
  }
}

/// The rules by which a token's payload is accepted.
public struct TokenRules: Hashable, Sendable {
  /// The allowed algorithms; empty if signatures are not verified.
  public var algorithms: [TokenAlgorithm]
  /// The issuer that `iss` must name; `nil` for any.
  public var issuer: String?
  /// The audience that `aud` must contain; `nil` for any.
  public var audience: String?
  /// The difference that clocks may have.
  public var leeway: Milliseconds = .seconds(30)

  public init(algorithms: [TokenAlgorithm] = []) { self.algorithms = algorithms }
}

/// The identity in a token that was accepted.
public final class VerifiedToken: Sendable {
  enum Claim: Equatable {
    /// The issuer's length, the issuer and the value, as they stand in a caller. The value is not empty.
    case text([UInt8])
    /// The value is neither a string nor an integer, or its member occurs twice.
    case unreadable
  }

  /// The claims that name callers, as far as the token has them.
  let claims: [String: Claim]
  /// The first second since 1970 at which the token is not accepted any more, with the leeway; `nil` for none.
  public let endsAt: Int64?

  init(claims: [String: Claim], endsAt: Int64?) {
    self.claims = claims
    self.endsAt = endsAt
  }

  /// The approximate memory of the claims, in bytes.
  public var bytes: Int {
    claims.reduce(0) { sum, claim in
      if case .text(let text) = claim.value { sum + text.count } else { sum }
    }
  }
}

extension TokenRules {
  /// Reads a payload whose signature has been verified, or need not be.
  ///
  /// - Parameters:
  ///   - claims: The claims that name callers.
  ///   - now: The time in seconds since 1970.
  public func read(_ payload: [UInt8], claims: Set<String>, now: Int64) -> Result<VerifiedToken, TokenFault> {
    payload.withUnsafeBytes { bytes in
      guard let document = try? JSONParser.parse(bytes) else { return .failure(.malformed) }
      return read(document, claims: claims, now: now)
    }
  }

  private func read(
    _ document: JSONDocument, claims names: Set<String>, now: Int64
  ) -> Result<VerifiedToken, TokenFault> {
    let leeway = self.leeway.count / 1000
    var issuer: [UInt8] = []
    switch TokenMember(document, JSONPointer(member: "iss")) {
    case .absent: break
    case .text(let text): issuer = text
    case .number, .other: return .failure(.malformed)
    }
    if let wanted = self.issuer, !issuer.elementsEqual(wanted.utf8) { return .failure(.foreign) }
    guard isAudience(of: document) else { return .failure(.foreign) }
    let (end, start) = (Self.time("exp", of: document), Self.time("nbf", of: document))
    guard let end, let start else { return .failure(.malformed) }
    if case .at(let second) = start, now < second - leeway { return .failure(.premature) }
    var endsAt: Int64?
    if case .at(let second) = end {
      guard now < second + leeway else { return .failure(.expired) }
      endsAt = second + leeway
    }
    var claims: [String: VerifiedToken.Claim] = [:]
    for name in names { claims[name] = Self.claim(name, of: document, by: issuer) }
    return .success(VerifiedToken(claims: claims, endsAt: endsAt))
  }

  /// Whether `aud` is the audience, or a list with it.
  ///
  /// It counts in the forms of RFC 7519 (section 4.1.3) alone, a string or an array of strings: in any other one a
  /// reader may find another audience.
  private func isAudience(of document: JSONDocument) -> Bool {
    guard let audience else { return true }
    let pointer = JSONPointer(member: "aud")
    if case .text(let text) = TokenMember(document, pointer) { return text.elementsEqual(audience.utf8) }
    guard let list = document.array(at: pointer, maxElements: .max) else { return false }
    var isNamed = false
    for element in list.elements {
      guard case .string(let content) = document.value(at: element.lowerBound) else { return false }
      if IteratorSequence(JSONText(content)).elementsEqual(audience.utf8) { isNamed = true }
    }
    return isNamed
  }

  private enum Moment {
    case unlimited
    case at(Int64)
  }

  /// The latest second that calendars of tokens use; a later one could overflow.
  private static let maxSecond = 1e15

  /// A claim with a time (RFC 7519, section 2: seconds since 1970, maybe with a fraction); `nil` if it has another
  /// type.
  private static func time(_ name: String, of document: JSONDocument) -> Moment? {
    switch TokenMember(document, JSONPointer(member: name)) {
    case .absent: return .unlimited
    case .text, .other: return nil
    case .number(let text, _):
      guard let seconds = Double(String(decoding: text, as: UTF8.self)), abs(seconds) <= maxSecond else {
        return nil
      }
      return .at(Int64(seconds))
    }
  }

  private static func claim(
    _ name: String, of document: JSONDocument, by issuer: [UInt8]
  ) -> VerifiedToken.Claim? {
    guard let pointer = JSONPointer(claim: name) else { return nil }
    switch TokenMember(document, pointer) {
    case .absent: return nil
    case .text(let value), .number(let value, isInteger: true):
      return value.isEmpty ? nil : .text(.framed(issuer: issuer, value: value))
    case .number, .other: return .unreadable
    }
  }
}

extension [UInt8] {
  /// The value of a claim with the issuer who made it, as it stands in a caller: two issuers may give the same name to
  /// different people.
  static func framed(issuer: [UInt8], value: [UInt8]) -> [UInt8] {
    var framed: [UInt8] = []
    framed.reserveCapacity(issuer.count + value.count + 2)
    framed.appendLength(issuer.count)
    framed += issuer
    framed += value
    return framed
  }
}
