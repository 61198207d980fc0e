import HTTPTypes

/// The decisions of the queue about its order. They read no database.
enum QueueRules {
  /// The state of a group when one of its intents has ended.
  enum GroupAction: Hashable { case admitNext, cancelRest, hold }

  static func afterEnd(_ outcome: QueuedOutcome, rule: GroupRule) -> GroupAction {
    switch (outcome, rule) {
    case (.completed, _), (.cancelled, _), (_, .proceed): .admitNext
    case (_, .fail): .cancelRest
    case (_, .hold): .hold
    }
  }

  /// The treatment of two unsent changes of one object.
  enum CoalescingAction: Hashable {
    /// Both are sent.
    case keepBoth
    /// The older one is pointless.
    case dropOlder
    /// The newer one is: the object is to be deleted.
    case dropNewer
  }

  /// A newer PUT replaces an older one, and a DELETE wins over both. A PATCH and a POST say something that the newer
  /// change does not contain, and are pointless only if the object is deleted.
  static func coalescing(older: HTTPRequest.Method, newer: HTTPRequest.Method) -> CoalescingAction {
    switch (older, newer) {
    case (.delete, _): .dropNewer
    case (.put, .put), (.patch, .put): .dropOlder
    case (.put, .delete), (.patch, .delete): .dropOlder
    default: .keepBoth
    }
  }
}
