import Wire

/// The date of a request's first delivery, as the profile `repeatability` demands it beside the key (OASIS Repeatable
/// Requests 1.0).
extension Route {
  private static let field = "repeatability-first-sent"

  /// Refuses a request without that date, with a date alone, and with one after which the record may be gone: nobody
  /// could tell then whether the request has run.
  ///
  /// - Parameter now: The wall clock in seconds since 1970.
  public func refuseUnrepeatable(
    _ head: MessageHead, _ finding: KeyFinding, now: () -> Int
  ) throws(Problem) {
    guard policy.profile == .repeatability else { return }
    switch head.find(Self.field) {
    case .absent where finding == .missing: return
    case .once where finding == .missing: throw .keyMissing(policy.key)
    case .once(let range):
      guard let date = head.withBytes(range, { HTTPDate.parse($0, now: now) }) else { break }
      // Later than the end of the record's memory, which begins with its completion.
      guard Int64(now() - date) * 1000 <= policy.remember.count else { throw .firstSentTooLongAgo }
      return
    case .absent, .repeated: break
    }
    throw .keyInvalid(.firstSent, policy: policy.key)
  }
}

extension MessageHead {
  /// Whether the request is made by that standard, whose clients look for 501 where it is not followed.
  fileprivate var isRepeatable: Bool {
    if case .absent = find("repeatability-request-id") { false } else { true }
  }
}

extension Problem {
  /// A key came with `unmatched_keys: refuse` on a route that protects nothing, or without a route.
  public static func keyNotSupported(in head: MessageHead) -> Problem {
    head.isRepeatable ? .keyNotSupported.with(status: 501) : .keyNotSupported
  }
}
