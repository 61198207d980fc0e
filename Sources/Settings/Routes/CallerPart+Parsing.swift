import Idempotency

extension CallerPart {
  static let allowed =
    "header:NAME, cookie:NAME, query:NAME, json:/pointer, jwt:CLAIM, basic:user, sigv4:access_key, client_certificate "
    + "or address; header?:NAME for one that may be missing; or alternatives such as \"jwt:sub | cookie:sid\""

  /// The maximum number of alternatives of one part. Each may cost a search of the whole body.
  static let maxAlternatives = 8

  /// Reads a part as a file has it: `jwt:sub`, or alternatives such as `jwt:sub | cookie:sid`.
  static func read(_ text: String) throws(Refusal) -> CallerPart {
    var parts: [CallerPart] = []
    let texts = text.components(separatedBy: separator)
    for one in texts where isJoined(one) {
      throw Refusal("must have one space on each side of |; write \"\(separated(text))\"")
    }
    for text in texts {
      let part = try SourceText.parse(text, parseOne)
      guard texts.count == 1 || !part.isOptional else {
        throw Refusal("has the optional part \(part.text) among alternatives; take its question mark out")
      }
      guard !parts.contains(part) else { throw Refusal("names \(part.text) twice; take one of them out") }
      parts.append(part)
    }
    try require(parts.count <= maxAlternatives, "must have \(maxAlternatives) alternatives at most")
    if let part = parts.dropLast().first(where: { $0 == .address }) {
      throw Refusal(
        "has \(part.text), which nearly every request has, so that no later alternative counts; write it last"
      )
    }
    return parts.count == 1 ? parts[0] : .either(parts)
  }

  /// Whether alternatives are separated without spaces, which would be a part of the first one's name.
  private static func isJoined(_ text: String) -> Bool {
    text.split(separator: "|", omittingEmptySubsequences: false).dropFirst()
      .contains { (try? parseOne(String($0).trimmed)) != nil }
  }

  /// The alternatives of a text with one separator between two of them. A name may have a `|`.
  private static func separated(_ text: String) -> String {
    var parts: [String] = []
    for piece in text.split(separator: "|").map({ String($0).trimmed }) where !piece.isEmpty {
      if let last = parts.indices.last, (try? parseOne(piece)) == nil {
        parts[last] += "|\(piece)"
      } else {
        parts.append(piece)
      }
    }
    return parts.joined(separator: separator)
  }

  /// Reads a part as a namespace remembers it.
  static func parse(_ text: String) throws(Refusal) -> CallerPart {
    var parts: [CallerPart] = []
    for text in text.components(separatedBy: separator) { parts.append(try parseOne(text)) }
    return parts.count == 1 ? parts[0] : .either(parts)
  }

  /// Reads one of the alternatives, or a part by itself: `header:NAME`, or `header?:NAME` for one that may be missing.
  private static func parseOne(_ text: String) throws(Refusal) -> CallerPart {
    guard let mark = text.firstIndex(of: "?"), text[mark...].hasPrefix("?:"),
      !text[..<mark].contains(":")
    else { return try parsePlain(text) }
    guard optionalKinds.contains(String(text[..<mark])) else {
      let kinds = optionalKinds.map { "\($0)?:" }.asAlternatives
      throw Refusal("cannot be optional, which is for \(kinds); take the question mark out")
    }
    var plain = text
    plain.remove(at: mark)
    return .optional(try parsePlain(plain))
  }

  private static func parsePlain(_ text: String) throws(Refusal) -> CallerPart {
    if text == "address" { return .address }
    if text == "client_certificate" { return .clientCertificate(.identity) }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw refusal(of: text) }
    switch parts[0] {
    case "header": return .header(try Token.identityField(parts[1]))
    case "cookie":
      guard Token.isToken(parts[1]) else { throw Refusal("must name a cookie, such as cookie:session") }
      return .cookie(String(parts[1]))
    case "query":
      guard !parts[1].isEmpty else { throw Refusal("must name a query parameter, such as query:account") }
      return .query(String(parts[1]))
    case "jwt": return try parseClaim(parts[1])
    case "json": return .json(try JSONPointer.parse(parts[1]))
    case "basic":
      try require(
        parts[1] == "user", "must be basic:user, since a password may be replaced while its user stays")
      return .basicUser
    case "sigv4":
      try require(
        parts[1] == "access_key",
        "must be sigv4:access_key, since all else of a signature differs from one delivery to the next")
      return .signingKey
    case "client_certificate":
      guard let part = CallerPart.CertificatePart(rawValue: String(parts[1])), part != .identity else {
        throw Refusal("must be client_certificate, client_certificate:subject or client_certificate:san")
      }
      return .clientCertificate(part)
    default: throw refusal(of: text)
    }
  }

  /// Reads `sub`, or `sub@cookie:NAME` and `sub@header:NAME` for a claim of a token in another place.
  private static func parseClaim(_ text: Substring) throws(Refusal) -> CallerPart {
    let (claim, place) = try split(text)
    try require(!claim.isEmpty, "must name a claim of the token, such as jwt:sub\(place.text)")
    // A claim's name may itself be a URL, and then has no slash at its start.
    return .jwt(claim.hasPrefix("/") ? try JSONPointer.parse(claim) : String(claim), at: place)
  }

  private static func split(_ text: Substring) throws(Refusal) -> (claim: Substring, place: TokenPlace) {
    guard let mark = text.lastIndex(of: "@") else { return (text, .authorization) }
    let parts = text[mark...].dropFirst().split(
      separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    // An @ may be a part of the claim's name.
    guard parts.count == 2, ["cookie", "header", "query", "json", "form"].contains(String(parts[0])) else {
      return (text, .authorization)
    }
    switch parts[0] {
    case "cookie":
      try require(Token.isToken(parts[1]), "must name the token's cookie, such as jwt:sub@cookie:session")
      return (text[..<mark], .cookie(String(parts[1])))
    case "header":
      let name = try Token.identityField(parts[1])
      if name == "authorization" {
        throw Refusal("has the token where it is by default; write jwt:\(text[..<mark])")
      }
      return (text[..<mark], .header(name))
    default:
      throw Refusal(
        "must have its token in a cookie or a header field: jwt:sub@cookie:NAME or jwt:sub@header:NAME")
    }
  }

  private static func refusal(of text: String) -> Refusal {
    SourceText.refusal(of: text, allowed: allowed, words: ["address", "client_certificate"])
  }
}

extension String {
  fileprivate var trimmed: String {
    var text = self[...]
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }

  fileprivate func components(separatedBy separator: String) -> [String] {
    split(separator: separator, omittingEmptySubsequences: false).map(String.init)
  }
}

extension PayloadPart {
  static let allowed = "/pointer, query:NAME, form:NAME or part:NAME"
  static let allowedInIgnore = "/pointer, query:NAME, form:NAME, part:NAME or part-filename"

  /// - Parameter allowed: The forms, which a refusal names.
  static func parse(_ text: String, allowed: String) throws(Refusal) -> PayloadPart {
    if text.hasPrefix("/") { return .json(try JSONPointer.parse(text)) }
    let part = try SourceText.parse(text) { text throws(Refusal) in
      guard let part = PayloadPart(text: text) else {
        let near = Token.isToken(text) && text != "part-filename" ? "; did you mean /\(text)?" : ""
        throw Refusal("must be \(allowed)\(near)")
      }
      return part
    }
    guard part != .fileNames || allowed == allowedInIgnore else {
      throw Refusal("is for ignore alone; name the part that counts, such as part:document")
    }
    return part
  }
}

extension Notation<[PayloadPart]> {
  static func parts(_ allowed: String) -> Notation {
    .list(
      "a list of \(allowed)", of: "a part of the payload", show: { .text($0.text) },
      parse: { text throws(Refusal) in try PayloadPart.parse(text, allowed: allowed) })
  }
}
