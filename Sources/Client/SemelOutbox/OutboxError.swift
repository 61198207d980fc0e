import GRDB

/// The failures of a queue. After each of them the queue is as it was before the call.
public enum OutboxError: Error, Hashable, Sendable {
  /// The disk is full. What was enqueued before is safe, and what was not enqueued was not sent.
  case diskFull
  /// There are as many open intents as ``QueueLimits/maxOpen`` allows.
  case queueFull
  /// The body is larger than ``QueueLimits/maxBody``; its size in bytes.
  case bodyTooLarge(Int)
  /// The request holds credentials, which age and would be stored in clear. A `CredentialSource` applies them.
  case credentialInRequest(String)
  /// The path does not begin with a slash: behind the server's name it might name another server.
  case invalidPath(String)
  /// The name of `once:` belongs to an intent with another request. Sending that one in silence would lose what the
  /// user has changed.
  case onceMismatch(QueuedIntent)
  /// An intent that is not in the queue, or not any more.
  case notFound
  /// The body cannot be sealed or opened, or the file of the body cannot be read.
  case unreadableBody(String)
  /// The row of an intent cannot be read, since something else has written to it; the queue's description. The other
  /// intents are sent. This one is tried again every minute until its time is over. If its key is invalid, it ends
  /// without a call of ``Outbox/Settings/onEnd``, which could not name it.
  case unreadableIntent(String)
  /// The task was cancelled while it waited.
  case cancelled
  /// Any other failure of the database, in its own words.
  case database(String)

  /// Whether one intent is concerned, and the others are not.
  var isUnreadable: Bool {
    switch self {
    case .unreadableBody, .unreadableIntent: true
    default: false
    }
  }

  init(_ error: any Error) {
    switch error {
    case let error as OutboxError: self = error
    case let refused as EndRefused: self.init(refused.error)
    case let error as DatabaseError where error.resultCode == .SQLITE_FULL: self = .diskFull
    case is CancellationError: self = .cancelled
    default: self = .database("\(error)")
    }
  }
}

/// The application's own change at the end of an intent has failed.
struct EndRefused: Error {
  let error: any Error
}

/// Runs a body whose errors become those of the queue.
func translatingErrors<Value>(_ body: () throws -> Value) throws(OutboxError) -> Value {
  do { return try body() } catch { throw OutboxError(error) }
}
