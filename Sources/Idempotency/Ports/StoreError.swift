/// Why the store gave no answer. Each case says whether the command may have been run.
public enum StoreError: Error, Equatable, Sendable {
  /// It certainly was not run: it never left, or the store refused it. Safe to ask again.
  case unavailable(String)
  /// The store is there and must not be used: it may lose what it is told, or knows requests by another identity. The
  /// command was not run, and this is never a reason to run the request.
  case refused(String)
  /// It may have been run, and its reply is lost. What the record's owner token tells decides.
  case fateUnknown(String)
  /// The record is there and this build cannot read it. Never a reason to run the request.
  case unreadable(String)

  /// The cause in words, for a log or an operator.
  public var text: String {
    switch self {
    case .unavailable(let text), .refused(let text), .fateUnknown(let text), .unreadable(let text): text
    }
  }
}
