/// The failure of a command to the store. Each case states whether the command may have been run.
public enum StoreError: Error, Equatable, Sendable {
  /// The command was certainly not run: it was not sent, or the store refused it. It is safe to repeat.
  case unavailable(String)
  /// The store is reachable but must not be used: it may lose writes, or identifies requests in another way. The
  /// command was not run, and this error is never a reason to execute the request.
  case refused(String)
  /// The command may have been run, and its reply is lost. The record's owner token decides.
  case fateUnknown(String)
  /// The record exists, and this build cannot read it. This error is never a reason to execute the request.
  case unreadable(String)

  /// The cause as text, for a log or an operator.
  public var text: String {
    switch self {
    case .unavailable(let text), .refused(let text), .fateUnknown(let text), .unreadable(let text): text
    }
  }
}
