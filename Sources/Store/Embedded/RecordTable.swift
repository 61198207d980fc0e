import GRDB
import Idempotency
import NIOCore

enum TableError: Error, Equatable {
  case sql(SQLError)
  case unreadable(String)
}

/// The entries as rows of the database. Used by the writer inside its transactions.
final class RecordTable {
  /// The formats of the rows.
  enum Format: Int64 {
    case plain = 1
    /// Location and response are encoded, as `OutcomeCodec` does it. The whole of the response is in `body`.
    case encoded = 2
  }

  /// The `state` of a row.
  enum State: Int64 { case inFlight = 1, unknown, released, completed, tombstone, fence }

  /// The bits of a row's `flags`. The end of the record's fence is stored above them, in milliseconds.
  enum Flag {
    static let fenceShift: Int64 = 8
    static let followsUnknown: Int64 = 1
    static let onlyRejectedSoFar: Int64 = 2
  }

  struct Found {
    var entry: StoredEntry?
    var response: Int64?
    static let nothing = Found(entry: nil, response: nil)
  }

  let statements: RecordStatements
  var recipes: [String: Recipe] = [:]

  /// The response that the transaction has read last, with its row number, for several claims of one record.
  private var latestResponse: (number: Int64, response: Outcome)?
  /// The bytes of the responses that the transaction has read. Each reader makes a copy of an encoded response.
  private(set) var bytesRead = 0
  /// Whether the entry that is being found is read with its response.
  var readsResponse = true
  /// The open records, whose changes the transaction's owner commits or rolls back.
  var openRows = OpenRows()

  init(_ database: Database) throws { statements = try RecordStatements(database) }

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

  /// Must be called at the end of a transaction.
  func forgetResponses() {
    latestResponse = nil
    bytesRead = 0
  }

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
