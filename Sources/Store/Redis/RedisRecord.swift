import Idempotency

/// The parts of a record's text that are needed outside Redis; `RedisScript` documents the format.
struct RedisRecord: Equatable {
  enum State { case inFlight, unknown, released, completed, forgotten }

  var state: State
  var attempt: Int
  var firstSeen: StoreInstant
  var since: StoreInstant
  var span: Milliseconds
  var unknownRetention: Milliseconds
  var remember: Milliseconds
  var onlyRejectedSoFar = false
  var followsUnknown = false
  var isAnswerKept = false
  /// The end of the fence, as in `StoredRecord`.
  var fencedUntil: StoreInstant?
  var recipe: String
  var status = 0
  var location: String?

  /// Parses a record's text; `nil` for a format that this version does not write.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var cursor = Cursor(bytes)
    guard cursor.next()?.elementsEqual("1".utf8) == true, cursor.next() != nil,
      let state = cursor.next().flatMap(Self.state), let attempt = cursor.number(),
      let firstSeen = cursor.number(), let since = cursor.number(), let span = cursor.number(),
      let unknownRetention = cursor.number(), let remember = cursor.number(), let flags = cursor.next(),
      cursor.next() != nil, let recipe = cursor.next()
    else { return nil }
    self.state = state
    self.attempt = Int(attempt)
    self.firstSeen = StoreInstant(milliseconds: firstSeen)
    self.since = StoreInstant(milliseconds: since)
    self.span = Milliseconds(span)
    self.unknownRetention = Milliseconds(unknownRetention)
    self.remember = Milliseconds(remember)
    self.recipe = String(decoding: recipe, as: UTF8.self)
    guard read(flags: flags) else { return nil }
    guard state == .completed else { return }
    guard let status = cursor.number() else { return nil }
    self.status = Int(status)
    location = cursor.remainder.map { String(decoding: $0, as: UTF8.self) }
  }

  private mutating func read(flags: UnsafeRawBufferPointer) -> Bool {
    for flag in flags {
      switch flag {
      case UInt8(ascii: "o"): onlyRejectedSoFar = true
      case UInt8(ascii: "u"): followsUnknown = true
      case UInt8(ascii: "k"): isAnswerKept = true
      case UInt8(ascii: "f"): fencedUntil = StoreInstant(milliseconds: 0)
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        guard let until = fencedUntil?.milliseconds, until < 1 << 53 else { return false }
        fencedUntil = StoreInstant(milliseconds: until * 10 + Int64(flag - 0x30))
      case UInt8(ascii: "-"): break
      default: return false
      }
    }
    return true
  }

  private static func state(_ word: UnsafeRawBufferPointer) -> State? {
    switch word.first {
    case UInt8(ascii: "i"): .inFlight
    case UInt8(ascii: "u"): .unknown
    case UInt8(ascii: "r"): .released
    case UInt8(ascii: "c"): .completed
    case UInt8(ascii: "f"): .forgotten
    default: nil
    }
  }

  /// Iterates over the parts, which are separated by spaces.
  private struct Cursor {
    private let bytes: UnsafeRawBufferPointer
    /// The beginning of the next part; past the end after the last part.
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var remainder: UnsafeRawBufferPointer? {
      position <= bytes.count ? UnsafeRawBufferPointer(rebasing: bytes[position...]) : nil
    }

    mutating func next() -> UnsafeRawBufferPointer? {
      guard position <= bytes.count else { return nil }
      let start = position
      while position < bytes.count, bytes[position] != 0x20 { position += 1 }
      defer { position += 1 }
      return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    mutating func number() -> Int64? {
      guard let word = next(), !word.isEmpty, word.count <= 18 else { return nil }
      var number: Int64 = 0
      for byte in word {
        guard byte &- 0x30 < 10 else { return nil }
        number = number * 10 + Int64(byte &- 0x30)
      }
      return number
    }
  }
}

extension RedisRecord {
  /// The time from which the record counts as absent. Without a fence, its key has expired by then.
  private var end: StoreInstant {
    switch state {
    case .forgotten: since + span
    case .released: since + remember
    case .completed: since + max(span, remember)
    case .inFlight, .unknown: since + span + unknownRetention + remember
    }
  }

  /// Returns the record's standing.
  ///
  /// - Parameters:
  ///   - now: The present time by the store's clock.
  ///   - response: The recorded response. If there should be one and is none, Redis has evicted it; the record still
  ///     contains the status and the location.
  func standing(now: StoreInstant, response: RecordedResponse?) -> Standing {
    if fencedUntil != nil, now >= end { return .absent }
    switch state {
    case .forgotten: return .absent
    case .released: return .released(attempt: attempt)
    case .inFlight where now < since + span:
      return .inFlight(leaseLeft: since + span - now, attempt: attempt)
    case .inFlight, .unknown:
      let age = max(now - (since + span), 0)
      return age < unknownRetention ? .unknown(age: age, attempt: attempt) : .expired(attempt: attempt)
    case .completed:
      let expiresAt = since + span
      guard now < expiresAt else { return .expired(attempt: attempt) }
      return .completed(
        CompletedRecord(
          outcome: response.map { .kept($0) } ?? .notKept(status: status, location: location),
          recordedAt: since,
          expiresAt: expiresAt, remaining: expiresAt - now, attempt: attempt))
    }
  }
}
