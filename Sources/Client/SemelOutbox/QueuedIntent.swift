public import SemelClient

/// The name of an intent in the queue. Store its key with the object that it is about: servers echo it.
public struct QueuedIntent: Hashable, Sendable, Codable, Identifiable {
  /// The place in the queue. Intents that were enqueued later have larger numbers.
  public let id: Int64
  /// The key under which it is sent.
  public let key: IntentKey

  /// The name of an intent that the application has stored.
  public init(id: Int64, key: IntentKey) {
    self.id = id
    self.key = key
  }
}

/// The end of a queued intent. Each has exactly one.
public enum QueuedOutcome: Hashable, Sendable {
  /// The operation was carried out, once. See `Outcome.completed`.
  case completed(Response, wasReplayed: Bool)
  /// The server has refused it for good.
  case rejected(Response)
  /// Nobody knows whether it was carried out. Have somebody look the result up; the key is never used for another try
  /// by itself.
  case unknown(Problem?)
  /// The time or the attempts ran out, and nothing was carried out.
  case expired
  /// It was taken out of the queue, and nothing was carried out.
  case cancelled(Cancellation)
}

/// The reasons for which an intent was taken out of the queue.
public enum Cancellation: Hashable, Sendable, Codable {
  case requested
  /// An earlier intent of its group failed, whose rule is ``GroupRule/fail``.
  case groupFailed(Int64)
  /// An earlier intent did not complete whose response was to give a value to this one, or the response lacks it.
  case dependencyFailed(Int64)
  /// A newer change of the same object, or its deletion, made it pointless.
  case replaced(Int64)
  /// The file of the body is gone. One that cannot be read for now is tried again.
  case bodyUnreadable
}

/// The course of a group after one of its intents was rejected, expired or became unknown.
public enum GroupRule: Int, Hashable, Sendable, Codable, CaseIterable {
  /// The next intent is sent.
  case proceed = 0
  /// All later intents of the group that are in the queue are cancelled.
  case fail = 1
  /// The group stands still until ``Outbox/resume(group:)``.
  case hold = 2
}

/// A value that a later intent takes from an earlier one's response, such as the server's id of an object that so far
/// has a local one only.
///
/// The mark `{semel:NAME}` in the later one's path or body stands for it. In a JSON body, a text that is nothing but the
/// mark is replaced with the JSON value itself: `{"order": "{semel:order}"}` becomes `{"order": 17}`.
public struct ResponseValue: Hashable, Sendable {
  /// The name in the mark.
  public let name: String
  /// The intent whose response has the value.
  public let source: QueuedIntent
  /// The place of the value in the response's JSON document, as a JSON pointer (RFC 6901): `/id`.
  public let pointer: String

  /// A value of a response, by its pointer.
  public init(_ name: String, of source: QueuedIntent, at pointer: String) {
    self.name = name
    self.source = source
    self.pointer = pointer
  }
}

/// The limits of a queue.
public struct QueueLimits: Hashable, Sendable {
  /// The largest body that is stored.
  public var maxBody = 1 << 20
  /// The largest body of a response that is stored. Of a larger one the head is kept.
  public var maxResponseBody = 1 << 20
  /// The most intents that have not ended.
  public var maxOpen = 100_000

  /// The default limits.
  public init() {}
}

/// The encryption of bodies of requests and responses in the database, by the application.
public protocol BodySeal: Sendable {
  /// The sealed form of a body. Authenticate the key with it, so that no row's body can be put into another row.
  func seal(_ body: [UInt8], key: IntentKey) throws -> [UInt8]
  func open(_ sealed: [UInt8], key: IntentKey) throws -> [UInt8]
}
