import Idempotency
import Wire

/// The tokens of the admin listener, and what each of them permits.
public struct AdminAccess: Sendable {
  enum Role: String, Sendable { case read, operate }

  private let operate: (@Sendable () -> Secret)?
  private let read: (@Sendable () -> Secret)?

  /// - Parameters:
  ///   - operate: Returns the token that permits everything; `nil` if no token is required.
  ///   - read: Returns the token that permits reading; `nil` if there is none. It counts beside the first one alone.
  public init(operate: (@Sendable () -> Secret)? = nil, read: (@Sendable () -> Secret)? = nil) {
    self.operate = operate
    self.read = read
  }

  var needsToken: Bool { operate != nil }

  /// The role that a token gives; `nil` for a token that is none of those configured.
  func role(ofToken given: some StringProtocol) -> Role? {
    if let operate, Self.areEqual(given, operate()) { return .operate }
    if let read, Self.areEqual(given, read()) { return .read }
    return nil
  }

  /// A token without the spaces around it (RFC 9110, section 5.5); `nil` for spaces alone, which equal no other.
  private static func trimmed(_ token: some StringProtocol) -> ArraySlice<UInt8>? {
    func isInner(_ byte: UInt8) -> Bool { byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t") }
    let bytes = Array(token.utf8)
    guard let first = bytes.firstIndex(where: isInner), let last = bytes.lastIndex(where: isInner) else {
      return nil
    }
    return bytes[first...last]
  }

  /// Compares in a time that does not depend on the position of the first difference.
  private static func areEqual(_ given: some StringProtocol, _ own: Secret) -> Bool {
    guard let left = trimmed(given), let right = trimmed(own.revealed), left.count == right.count else {
      return false
    }
    var differences: UInt8 = 0
    for (given, own) in zip(left, right) { differences |= given ^ own }
    return differences == 0
  }
}
