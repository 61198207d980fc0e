import Wire

/// Names and methods of HTTP (RFC 9110, section 5.6.2).
enum Token {
  /// A field's name, in lower case.
  static func fieldName(_ text: some StringProtocol) throws(Refusal) -> String {
    guard isToken(text) else { throw Refusal("must name a header field, such as X-Request-Id") }
    return text.lowercased()
  }

  /// A method as it is spelt on the wire. Methods know letter case, so that `post` would never be met.
  static func method(_ text: String) throws(Refusal) -> String {
    guard isToken(text), text == text.uppercased() else {
      throw Refusal("must be a method in capitals, such as POST")
    }
    return text
  }

  static func isToken(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(ASCII.isTokenByte)
  }
}
