/// The way in which the outcome of an attempt was lost.
public enum LossCause: String, Sendable, CaseIterable {
  /// No complete response within the time limit.
  case timeOut = "time_out"
  /// The connection to the backend ended before the response was complete, or what came was no response at all.
  case connectionLost = "connection_lost"
  /// The backend has responded with a status, but the rest of its response cannot be read. Only a status of the class
  /// *unknown* makes the record unknown: otherwise no more than the response is lost.
  case malformed
  /// The backend, or an intermediary, responded with a status of the class *unknown*.
  case status
  /// The response to a batch has no certain result for each of its items.
  case results
  /// There was no memory to keep the outcome until the store took it.
  case noMemory = "no_memory"
  /// This process ended before the backend had responded.
  case shutdown
  /// The owner's lease has lapsed without a report from the owner: its process died, or could not reach the store.
  /// Never logged by the owner, but by whoever meets the lease, and never stored: it follows from the record's state.
  case leaseLapsed = "lease_lapsed"

  /// Whether the exchange has ended, so that no late response can come.
  public var endsExchange: Bool { self != .timeOut && self != .leaseLapsed }
}
