import GRDB
import Idempotency
import NIOCore

/// The reason for which an entry cannot be read.
enum TableError: Error, Equatable {
  case sql(SQLError)
  /// The row exists, but this build cannot interpret it.
  case unreadable(String)
}

/// The entries as rows of the database. Used by the writer alone, inside its transactions.
final class RecordTable {
  /// The formats of the rows that this build writes and reads.
  enum Format: Int64 {
    case plain = 1
    /// Location and response are encoded, as `OutcomeCodec` does it. The whole of the response is in `body`.
    case encoded = 2
  }

  /// The `state` of a row.
  enum State: Int64 { case inFlight = 1, unknown, released, completed, tombstone, fence }

  /// The bits of a row's `flags`. The end of the fence that the record carries is stored above them, in milliseconds.
  enum Flag {
    static let fenceShift: Int64 = 8
    static let followsUnknown: Int64 = 1
    static let onlyRejectedSoFar: Int64 = 2
  }

  /// An entry, and the row number of its response.
  struct Found {
    var entry: StoredEntry?
    var response: Int64?
    static let nothing = Found(entry: nil, response: nil)
  }

  let statements: RecordStatements
  /// The recipes that were read, by their text. A configuration has a handful.
  var recipes: [String: Recipe] = [:]

  /// The response that the transaction has read last, with its row number. Several claims of one record then share its
  /// bytes.
  private var latestResponse: (number: Int64, response: Outcome)?
  /// The size of the responses that the transaction has read, in bytes, which is the memory that their readers will
  /// hold. Each reader makes a copy of an encoded response.
  private(set) var bytesRead = 0
  /// Whether the entry that is being found is read with its response.
  var readsResponse = true
  /// The open records, whose changes the owner of the transaction commits or rolls back.
  var openRows = OpenRows()

  init(_ database: Database) throws { statements = try RecordStatements(database) }

  /// The response of a row, if the transaction has read it last.
  func readResponse(_ number: Int64) -> Outcome? {
    guard let latestResponse, latestResponse.number == number else { return nil }
    if case .encoded = latestResponse.response { bytesRead += latestResponse.response.decodedSize }
    return latestResponse.response
  }

  func keep(_ response: Outcome, _ number: Int64) {
    latestResponse = (number, response)
    bytesRead += response.decodedSize
  }

  /// Must be called when rows of responses change, since their numbers are used again.
  func forgetLatestResponse() { latestResponse = nil }

  /// Must be called at the end of a transaction: after it, the rows may change.
  func forgetResponses() {
    latestResponse = nil
    bytesRead = 0
  }

  /// Writes the time of a change, from which the clock of the next start is derived.
  func touch(_ clock: StoreClock) throws(SQLError) {
    statements.updateClock.bind(1, clock.now().milliseconds)
    try statements.updateClock.run()
  }
}

extension Outcome {
  /// The bytes that it holds once it is decoded, as far as it states them.
  fileprivate var decodedSize: Int {
    guard case .encoded(let encoded) = self, let response = encoded.response else { return size }
    return max(size, Envelope.plainLength(of: response))
  }
}
