/// The name of a small value that a namespace keeps in its store, under no record and without an end.
public struct NamespaceFact: Hashable, Sendable {
  public let name: String

  public init(name: String) { self.name = name }

  /// The secret that keys the digests in logs where no `id_secret_file` is configured.
  public static let logSecret = NamespaceFact(name: "log_secret")
  /// A random value made with the namespace. Its absence later means that the store came back empty.
  public static let epoch = NamespaceFact(name: "epoch")
  /// The configurations that use the namespace, and what identifies their requests.
  public static let configurations = NamespaceFact(name: "configurations")
}

/// Small values that all nodes of a namespace share: read at start and on reconnection, never for a request.
public protocol NamespaceFacts: Sendable {
  /// The fact's value, `nil` where it has none.
  func fact(_ fact: NamespaceFact) async throws(StoreError) -> String?
  /// Sets the fact where it still has the value `expected` (`nil`: none), in one atomic step.
  ///
  /// Safe to repeat: a repetition of a step that took effect returns the same.
  /// - Parameter value: Not empty.
  /// - Returns: The value that the fact has afterwards: `value`, or what another node has made of it.
  func replace(
    _ fact: NamespaceFact, _ expected: String?, with value: String
  ) async throws(StoreError) -> String?
}

extension NamespaceFacts {
  /// Sets the fact where it has no value yet.
  /// - Returns: The value that all nodes share from now on.
  public func establish(_ fact: NamespaceFact, as value: String) async throws(StoreError) -> String {
    guard let value = try await replace(fact, nil, with: value) else {
      throw .unreadable("the store has kept no value of \(fact.name)")
    }
    return value
  }
}
