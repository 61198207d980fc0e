/// The namespaces of a store that several share, each with a digest of the configuration that entered it last.
public protocol NamespaceDirectory: Sendable {
  /// The digests, by namespace.
  func configurations() async throws(StoreError) -> [String: String]
  func enter(_ namespace: String, as digest: String) async throws(StoreError)
}
