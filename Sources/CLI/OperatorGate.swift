/// The moment from which the operator's listener stands, for the one task that waits for it.
struct OperatorGate: Sendable {
  private let moments: AsyncStream<Void>
  private let end: AsyncStream<Void>.Continuation

  /// - Parameter isNeeded: false where there is no such listener.
  init(isNeeded: Bool) {
    (moments, end) = AsyncStream.makeStream()
    if !isNeeded { open() }
  }

  func open() { end.finish() }

  /// Returns once the listener stands; throws where the start has failed meanwhile.
  func opened() async throws {
    for await _ in moments {}
    try Task.checkCancellation()
  }
}
