/// Where the nodes of a namespace share the count of open records: counting walks over the whole store, so that one node
/// does it and the others read what it has found.
public protocol CensusBoard: Sendable {
  /// The last count, as its counter wrote it; `nil` where a new one is due.
  func lastCount() async throws(StoreError) -> String?
  /// Takes the turn at counting, or keeps it, for a span. False while another node has it.
  func takeTurn(_ token: OwnerToken, for span: Milliseconds) async throws(StoreError) -> Bool
  /// Shares a count for a span.
  func post(_ count: String, for span: Milliseconds) async throws(StoreError)
}
