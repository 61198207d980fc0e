import Idempotency
import SimRedis

/// A record in a store as the model knows it, or the fence that is left of one.
enum PathEntry {
  case record(PathRecord)
  case fence(attempt: Int, until: StoreInstant)

  /// The entry at a moment: `nil` if its time is over, the fence if a record's is.
  func present(at now: StoreInstant) -> PathEntry? {
    switch self {
    case .record(let record) where now < record.endsAt: return self
    case .record(let record):
      guard let until = record.fencedUntil, now < until else { return nil }
      return .fence(attempt: record.attempt, until: until)
    case .fence(_, let until): return now < until ? self : nil
    }
  }

  /// The end of its fence, which keeps owners from before a removal away; `nil` without one.
  var fenceEnd: StoreInstant? {
    switch self {
    case .record(let record): record.fencedUntil
    case .fence(_, let until): until
    }
  }
}

/// The part of a record that its path depends on.
struct PathRecord {
  /// The record's state, with the lease's end or the moment of the loss. A completed record may be a tombstone.
  enum State: Equatable {
    case inFlight(leaseUntil: StoreInstant)
    case unknown(since: StoreInstant)
    case released, completed
  }

  let state: State
  let owner: OwnerToken
  let attempt: Int
  let onlyRejectedSoFar: Bool
  let followsUnknown: Bool
  /// The moment from which it counts as absent, and the end of the fence that it carries.
  let endsAt: StoreInstant
  let fencedUntil: StoreInstant?

  var isInFlight: Bool {
    if case .inFlight = state { true } else { false }
  }

  var isUnknown: Bool {
    if case .unknown = state { true } else { false }
  }

  var word: String {
    switch state {
    case .inFlight: "in flight"
    case .unknown: "unknown"
    case .released: "released"
    case .completed: "completed"
    }
  }
}

extension PathEntry: CustomStringConvertible {
  var description: String {
    switch self {
    case .fence(let attempt, _): "a fence of attempt \(attempt)"
    case .record(let record):
      "attempt \(record.attempt) of owner \(record.owner.low % 10_000): \(record.word)"
    }
  }

  /// The entry of the store in memory.
  init(_ entry: StoredEntry) {
    switch entry {
    case .fence(let attempt, let until, _): self = .fence(attempt: attempt, until: until)
    case .record(let record):
      let state: PathRecord.State =
        switch record.state {
        case .inFlight(let leaseUntil): .inFlight(leaseUntil: leaseUntil)
        case .unknown(let loss): .unknown(since: loss)
        case .released: .released
        case .completed, .tombstone: .completed
        }
      self = .record(
        PathRecord(
          state: state, owner: record.owner, attempt: record.attempt,
          onlyRejectedSoFar: record.onlyRejectedSoFar, followsUnknown: record.followsUnknown,
          endsAt: record.endsAt, fencedUntil: record.fencedUntil)
      )
    }
  }
}

// The text of a record in Redis.
extension PathEntry {
  /// Reads a record's text by its documented form; `nil` if it has another one.
  init?(text: Bytes) {
    let words = text.split(separator: 0x20, maxSplits: 10, omittingEmptySubsequences: false)
      .prefix(10).map { String(decoding: $0, as: UTF8.self) }
    guard words.count == 10, words[0] == "1", let owner = OwnerToken(digits: words[1]) else { return nil }
    let numbers = words[3...8].compactMap { Int64($0) }
    guard numbers.count == 6 else { return nil }
    let (since, span, unknown, remember) = (numbers[2], numbers[3], numbers[4], numbers[5])
    let life: Int64
    let state: PathRecord.State
    switch words[2] {
    case "forgotten":
      self = .fence(attempt: Int(numbers[0]), until: StoreInstant(milliseconds: since + span))
      return
    case "in_flight":
      (state, life) = (
        .inFlight(leaseUntil: StoreInstant(milliseconds: since + span)), span + unknown + remember
      )
    case "unknown":
      (state, life) = (.unknown(since: StoreInstant(milliseconds: since)), span + unknown + remember)
    case "released": (state, life) = (.released, remember)
    case "completed": (state, life) = (.completed, max(span, remember))
    default: return nil
    }
    let fence = words[9].firstIndex(of: "f").flatMap { start in
      Int64(words[9][start...].dropFirst().prefix { $0.isNumber })
    }
    self = .record(
      PathRecord(
        state: state, owner: owner, attempt: Int(numbers[0]), onlyRejectedSoFar: words[9].contains("o"),
        followsUnknown: words[9].contains("u"),
        endsAt: StoreInstant(milliseconds: since + life),
        fencedUntil: fence.map { StoreInstant(milliseconds: $0) }))
  }

  /// Whether a text is a fence that another owner than the last one's has left, which an operator's command does.
  static func isForgotten(_ text: Bytes, after before: Bytes) -> Bool {
    let (words, last) = (text.split(separator: 0x20), before.split(separator: 0x20))
    return words.count > 2 && words[2].elementsEqual("forgotten".utf8) && last.count > 2
      && words[1] != last[1]
  }
}

extension OwnerToken {
  /// Reads 32 hexadecimal digits; `nil` if there are none.
  fileprivate init?(digits: String) {
    guard digits.utf8.count == 32, let high = UInt64(digits.prefix(16), radix: 16),
      let low = UInt64(digits.suffix(16), radix: 16)
    else { return nil }
    self.init(high: high, low: low)
  }
}
