import Wire

/// Tokens of HTTP (RFC 9110, section 5.6.2): field names, schemes and methods.
enum Token {
  static func fieldName(_ text: some StringProtocol) throws(Refusal) -> String {
    guard isToken(text) else { throw Refusal("must name a header field, such as X-Request-Id") }
    return text.lowercased()
  }

  /// The name, in lower case, of a field that identifies requests, which all deliveries of an intent must have alike.
  static func identityField(_ text: some StringProtocol) throws(Refusal) -> String {
    let name = try fieldName(text)
    let field = Array(name.utf8).withUnsafeBytes(FieldName.recognise)
    if field == .host {
      throw Refusal(
        "names the host, which is part of the endpoint; take it out, or write match.host for one host")
    }
    try require(
      !unfit.contains(field),
      "names a field of the connection, of one message or of Semel, which may differ from one delivery of a request "
        + "to the next; name one that the client sets for the request")
    return name
  }

  private static let unfit: FieldNameSet = [
    .hopByHop, .length, .ownRequest, .ownResponse, FieldNameSet(.expect),
  ]

  /// A field's whole value (RFC 9110, section 5.5): no white space at its ends, no control character. It may be empty.
  static func fieldValue(_ text: String) throws(Refusal) -> String {
    let scalars = text.unicodeScalars
    let ends = [scalars.first, scalars.last].compactMap(\.self)
    guard !ends.contains(where: isWhiteSpace), !scalars.contains(where: isControl) else {
      let words = scalars.split { isWhiteSpace($0) || isControl($0) }.map(String.init)
      throw Refusal(
        "must be a field's whole value in one line, without white space around it: write "
          + "\"\(words.joined(separator: " "))\"")
    }
    return text
  }

  private static func isWhiteSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 && scalar != "\t" || scalar.value == 0x7F
  }

  static func scheme(_ text: String) throws(Refusal) -> String {
    guard isToken(text) else { throw Refusal("must be a scheme of Authorization, such as GNAP") }
    return text.lowercased()
  }

  /// A method in its spelling on the wire. Methods are case-sensitive, so a route for `post` would never match.
  static func method(_ text: String) throws(Refusal) -> String {
    if ["*", "ALL", "ANY"].contains(text.uppercased()) {
      throw Refusal("is no method; leave methods out for all but GET, HEAD, OPTIONS and TRACE")
    }
    try require(isToken(text) && text == text.uppercased(), "must be a method in capitals, such as POST")
    guard !methods.contains(text) else { return text }
    if text == "CONNECT" { throw Refusal("is refused before a route is looked for; take it out") }
    let near = Suggestion.nearest(to: text, in: methods)
    throw Refusal("is no known method; \(near.map { "did you mean \($0)?" } ?? "write one such as POST")")
  }

  /// The methods of RFC 9110 except CONNECT, then PATCH, QUERY and the others that IANA has registered.
  private static let methods = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "QUERY", "ACL", "BASELINE-CONTROL",
    "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR",
    "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PROPFIND", "PROPPATCH", "REBIND",
    "REPORT", "SEARCH", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF",
    "VERSION-CONTROL",
  ]

  static func isToken(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(ASCII.isTokenByte)
  }
}

/// The names of upstreams, routes and the store's namespace: no log, metric or key of a store has to escape them.
enum Identifier {
  static func parse(_ text: String) throws(Refusal) -> String {
    let isValid = text.utf8.allSatisfy { ASCII.isLetterOrDigit($0) || "._-".utf8.contains($0) }
    guard isValid, (1...64).contains(text.utf8.count) else {
      throw Refusal("must be a name of 1 to 64 letters, digits, dots, hyphens and underscores")
    }
    return text
  }
}

/// The text of a key's source or of a caller's part in a file: `KIND:NAME`, or a word. What a namespace remembers is
/// read without these rules: an earlier version may have taken what they refuse.
enum SourceText {
  /// The result of `parse`. A name with white space at an end is refused, since no request would have it.
  static func parse<Source>(
    _ text: String, _ parse: (String) throws(Refusal) -> Source
  ) throws(Refusal) -> Source {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return try parse(text) }
    var name = parts[1]
    while name.first?.isWhitespace == true { name.removeFirst() }
    while name.last?.isWhitespace == true { name.removeLast() }
    let plain = "\(parts[0]):\(name)"
    let source = try parse(plain)
    if name == parts[1] { return source }
    throw Refusal("must have no space around what follows the colon; write \(plain)")
  }

  /// - Parameters:
  ///   - allowed: The forms, with the kinds that need a name as `KIND:`.
  ///   - words: The words that stand alone.
  static func refusal(of text: String, allowed: String, words: [String]) -> Refusal {
    let isKind = allowed.split(separator: " ").contains { $0.hasPrefix(text + ":") }
    let near =
      Suggestion.nearest(to: text, in: words) ?? (Token.isToken(text) && !isKind ? "header:\(text)" : nil)
    return Refusal("must be \(allowed)" + (near.map { "; did you mean \($0)?" } ?? ""))
  }
}
