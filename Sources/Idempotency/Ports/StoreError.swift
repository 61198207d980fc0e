/// Why the store gave no answer. Each case says whether the command may have been run.
public enum StoreError: Error, Equatable, Sendable {
  /// It certainly was not run: it never left, or the store refused it. Safe to ask again.
  case unavailable(String)
  /// It may have been run, and its reply is lost. What the record's owner token tells decides.
  case fateUnknown(String)
  /// The record is there and this build cannot read it. Never a reason to run the request.
  case unreadable(String)
}
