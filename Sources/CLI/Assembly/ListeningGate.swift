/// The event that a listener accepts connections, for the one task that waits for it.
struct ListeningGate: Sendable {
  private let moments: AsyncStream<Void>
  private let end: AsyncStream<Void>.Continuation

  /// Creates the event.
  ///
  /// - Parameter isNeeded: False if there is no such listener, so that nobody waits.
  init(isNeeded: Bool) {
    (moments, end) = AsyncStream.makeStream()
    if !isNeeded { open() }
  }

  func open() { end.finish() }

  /// Waits until the listener accepts connections. Throws if the start has failed meanwhile.
  func opened() async throws {
    for await _ in moments {}
    try Task.checkCancellation()
  }
}
