import NIOCore
import Wire

/// The place in which a request carries a caller's token.
public enum TokenPlace: Hashable, Sendable {
  /// `Authorization`, with the scheme `Bearer` or `DPoP`.
  case authorization
  /// Another field, with its name in lower case: the token alone, or behind one of these schemes.
  case header(String)
  /// A cookie, whose value is written so, too.
  case cookie(String)

  /// The place behind a claim's name in the notation of the configuration; empty for the usual one.
  public var text: String {
    switch self {
    case .authorization: ""
    case .header(let name): "@header:\(name)"
    case .cookie(let name): "@cookie:\(name)"
    }
  }

  /// The field that carries the token, in lower case.
  var field: String {
    switch self {
    case .authorization: "authorization"
    case .header(let name): name
    case .cookie: "cookie"
    }
  }

  /// The description in a sentence for a client. It contains words of the configuration only.
  var description: String {
    switch self {
    case .authorization: "the Authorization field"
    case .header(let name): "the \(name) header field"
    case .cookie(let name): "the cookie \(name)"
    }
  }
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
  public var bearerToken: BearerToken { token(at: .authorization) }

  /// The token in a place.
  public func token(at place: TokenPlace) -> BearerToken {
    switch place {
    case .authorization: token(in: find("authorization")) { Self.credentials($0) }
    case .header(let name): token(in: find(name)) { Self.carried($0) }
    case .cookie(let name): token(in: findCookie(name)) { Self.unquoted($0) }
    }
  }

  private func token(
    in finding: FieldFinding, _ read: (UnsafeRawBufferPointer) -> BearerToken
  ) -> BearerToken {
    switch finding {
    case .absent: .absent
    case .repeated: .refused(.repeated)
    case .once(let range): withBytes(range, read)
    }
  }

  /// The token behind its scheme.
  private static func credentials(_ value: UnsafeRawBufferPointer) -> BearerToken {
    guard !value.isEmpty else { return .absent }
    let scheme = value.prefix { $0 != ASCII.space && $0 != ASCII.tab }
    let name = UnsafeRawBufferPointer(rebasing: scheme)
    guard ASCII.equalsIgnoringCase(name, "bearer") || ASCII.equalsIgnoringCase(name, "dpop") else {
      return .refused(.otherScheme)
    }
    let token = value[scheme.endIndex...].drop { $0 == ASCII.space || $0 == ASCII.tab }
    return token.isEmpty ? .refused(.malformed) : .found(Array(token))
  }

  /// The token alone, or behind its scheme.
  private static func carried(_ value: UnsafeRawBufferPointer) -> BearerToken {
    if value.isEmpty { return .absent }
    let hasScheme = value.contains { $0 == ASCII.space || $0 == ASCII.tab }
    return hasScheme ? credentials(value) : .found(Array(value))
  }

  /// The token in a cookie, which may be in quotes (RFC 6265, section 4.1.1), and whose spaces some frameworks encode: no
  /// token has a percent sign.
  private static func unquoted(_ value: UnsafeRawBufferPointer) -> BearerToken {
    let quote = UInt8(ascii: "\"")
    let isQuoted = value.count >= 2 && value.first == quote && value.last == quote
    let inner = UnsafeRawBufferPointer(rebasing: isQuoted ? value.dropFirst().dropLast() : value[...])
    guard inner.contains(UInt8(ascii: "%")), PercentText.isWellFormed(inner) else { return carried(inner) }
    return Array(IteratorSequence(PercentText(inner, as: .decoded))).withUnsafeBytes(carried)
  }
}
