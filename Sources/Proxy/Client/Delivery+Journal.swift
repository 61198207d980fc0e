import Telemetry
import Wire

extension Delivery {
  /// Whether the request belongs into the journal: it has a record, or had a key, was refused, or met a shadowed route.
  var isForJournal: Bool {
    guard environment.journal != nil else { return false }
    return recordID != nil || logEntry.outcome == .refused || logEntry.outcome == .ignored
      || logEntry.would != nil
  }

  /// Adds an event of the request to the journal.
  @inline(never)
  func note(_ event: JournalEntry.Event) {
    guard let journal = environment.journal else { return }
    if logEntry.client == nil { logEntry.client = peer.loggedAddress }
    if logEntry.method == nil { logEntry.method = request.head.loggedMethod }
    journal.add(event, logEntry, record: recordID)
  }
}
