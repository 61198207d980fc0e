/// The name of a small value that a namespace keeps in its store, outside all records and without an expiry.
public struct NamespaceFact: Hashable, Sendable {
  public let name: String

  public init(name: String) { self.name = name }

  /// The secret for keyed digests in logs, where no `id_secret_file` is configured.
  public static let logSecret = NamespaceFact(name: "log_secret")
  /// A random value that is made with the namespace. If it is missing later, the store has come back empty.
  public static let epoch = NamespaceFact(name: "epoch")
  /// The configurations that use the namespace, with the settings that identify their requests.
  public static let configurations = NamespaceFact(name: "configurations")
}

/// Small values that all nodes of a namespace share. They are read at start and after a reconnection, never for a
/// request.
public protocol NamespaceFacts: Sendable {
  /// The fact's value; `nil` if it has none.
  func fact(_ fact: NamespaceFact) async throws(StoreError) -> String?
  /// Sets the fact if it still has the value `expected` (`nil` for no value), in one atomic step.
  ///
  /// The call is safe to repeat: repeating a step that took effect returns the same value.
  ///
  /// - Parameter value: The new value. It must not be empty.
  /// - Returns: The fact's value after the call: `value`, or the value that another node has set.
  func replace(
    _ fact: NamespaceFact, _ expected: String?, with value: String
  ) async throws(StoreError) -> String?
}

extension NamespaceFacts {
  /// Sets the fact if it has no value yet.
  /// - Returns: The value that all nodes share from now on.
  public func establish(_ fact: NamespaceFact, as value: String) async throws(StoreError) -> String {
    guard let value = try await replace(fact, nil, with: value) else {
      throw .unreadable("the store has kept no value of \(fact.name)")
    }
    return value
  }
}

/// The namespaces of a store that several share, each with a digest of the configuration that entered it last.
public protocol NamespaceDirectory: Sendable {
  /// The digests, by namespace.
  func configurations() async throws(StoreError) -> [String: String]
  func enter(_ namespace: String, as digest: String) async throws(StoreError)
}

/// The announcements by which the other nodes of a namespace drop a record from their caches.
public protocol CacheInvalidations: Sendable {
  /// Announces that a record was changed. Throws where the other nodes cannot be reached; safe to repeat.
  func announce(_ id: RecordID) async throws(StoreError)
}

/// The shared count of open records for the nodes of a namespace.
///
/// One node counts, and the others read its result. The same one repairs the index of open records.
public protocol OpenRecordBoard: Sendable {
  /// The latest count, in the form that its node posted; `nil` if a new count is due.
  func lastCount() async throws(StoreError) -> String?
  /// Takes the turn to count, or extends it, for a span. False while another node has it.
  func takeTurn(_ token: OwnerToken, for span: Milliseconds) async throws(StoreError) -> Bool
  /// Publishes a count for a span.
  func post(_ count: String, for span: Milliseconds) async throws(StoreError)
  /// Has the node that repairs the index walk quickly through the whole store once, from its beginning: a process may have
  /// ended with claims that it had not entered yet.
  func wishRepair() async throws(StoreError)
  /// Takes the wish, whichever node has made it. False if there is none.
  func takeRepairWish() async throws(StoreError) -> Bool
}
