/// The shared count of open records for the nodes of a namespace.
///
/// Counting walks through the whole store, so one node does it and the others read its result.
public protocol CensusBoard: Sendable {
  /// The latest count, in the form that its node posted; `nil` if a new count is due.
  func lastCount() async throws(StoreError) -> String?
  /// Takes the turn to count, or extends it, for a span. False while another node has it.
  func takeTurn(_ token: OwnerToken, for span: Milliseconds) async throws(StoreError) -> Bool
  /// Publishes a count for a span.
  func post(_ count: String, for span: Milliseconds) async throws(StoreError)
}
