/// JSON pointers (RFC 6901) to a member.
enum JSONPointer {
  static func parse(_ text: some StringProtocol) throws(Refusal) -> String {
    let message =
      "must be a JSON pointer that begins with a slash, such as /order/id (~1 for a slash, ~0 for ~)"
    guard text.hasPrefix("/") else { throw Refusal(message) }
    for part in text.split(separator: "~", omittingEmptySubsequences: false).dropFirst() {
      guard part.hasPrefix("0") || part.hasPrefix("1") else { throw Refusal(message) }
    }
    return String(text)
  }
}
