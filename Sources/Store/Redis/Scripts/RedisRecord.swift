import Idempotency
import NIOCore
import Wire

/// The parts of a record's text that are needed outside Redis; `RedisScript` documents the format. A class, so that
/// passing it copies nothing.
final class RedisRecord: Sendable {
  enum State { case inFlight, unknown, released, completed, forgotten }

  enum ResponsePlace: UInt8 {
    /// The end of the record's text.
    case record = 0x65
    /// The key `NAMESPACE:{ID}:r:OWNER`.
    case ownKey = 0x62
    /// The key `NAMESPACE:{ID}:r`, where earlier versions put every response.
    case sharedKey = 0x6B
  }

  let owner: OwnerToken
  let state: State
  let attempt: Int
  let firstSeen: StoreInstant
  let since: StoreInstant
  let span: Milliseconds
  let unknownRetention: Milliseconds
  let remember: Milliseconds
  private let flags: Flags
  let fingerprint: String
  let status: Int
  let location: String?
  /// The response if it is part of the record's text.
  let response: Outcome?
  /// The origin of the latest attempt; `nil` if it was not to be read.
  let attribution: Attribution?

  static let encodedFlag = UInt8(ascii: "x")
  /// The maximum number of digits of an attempt. Lua would write what follows a longer one in another form.
  static let maxAttemptDigits = 14
  /// The limit below which the first moment of a completed record is its age at completion, in milliseconds.
  private static let minInstant: Int64 = 1_000_000_000_000
  /// The first byte of the attribution, which no status has.
  static let attributionMark = UInt8(ascii: "@")

  /// Parses a record's text; `nil` for a format that this version cannot read.
  ///
  /// - Parameter isAttributed: Whether the attribution is to be read, which replays do without.
  init?(_ bytes: UnsafeRawBufferPointer, isAttributed: Bool = false) {
    var cursor = Cursor(bytes)
    guard cursor.next()?.elementsEqual("1".utf8) == true, let owner = cursor.next().flatMap(Self.token),
      let state = cursor.next().flatMap(Self.state), let attempt = cursor.number(Self.maxAttemptDigits),
      let firstSeen = cursor.number(), let since = cursor.number(), let span = cursor.number(),
      let unknownRetention = cursor.number(), let remember = cursor.number(),
      let flags = cursor.next().flatMap(Flags.init),
      let fingerprint = cursor.next(2)
    else { return nil }
    self.owner = owner
    self.state = state
    self.attempt = Int(attempt)
    let isAge = state == .completed && firstSeen < Self.minInstant
    // The first moment is after the last one if Redis' clock was set back in between.
    self.firstSeen = StoreInstant(milliseconds: isAge ? since - firstSeen : min(firstSeen, since))
    self.since = StoreInstant(milliseconds: since)
    self.span = Milliseconds(span)
    self.unknownRetention = Milliseconds(unknownRetention)
    self.remember = Milliseconds(remember)
    self.flags = flags
    self.fingerprint = String(decoding: fingerprint, as: UTF8.self)
    let origin = cursor.next(after: Self.attributionMark)
    attribution =
      isAttributed ? origin.flatMap { Attribution(text: String(decoding: $0, as: UTF8.self)) } : nil
    guard state == .completed else {
      (status, location, response) = (0, nil, nil)
      return
    }
    guard let status = cursor.number() else { return nil }
    self.status = Int(status)
    if flags.responsePlace == .record {
      response = cursor.remainder.flatMap { RedisResponse.read(ByteBuffer(bytes: $0))?.outcome }
      location = nil
    } else {
      response = nil
      location = cursor.remainder.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  var onlyRejectedSoFar: Bool { flags.onlyRejectedSoFar }
  var followsUnknown: Bool { flags.followsUnknown }
  var uncountedAttempts: Int { flags.uncountedAttempts }
  var responsePlace: ResponsePlace? { flags.responsePlace }
  var fencedUntil: StoreInstant? { flags.fencedUntil }

  var recipe: String { String(fingerprint.drop { $0 != " " }.dropFirst()) }

  /// Whether the record's text should end with a response, and does not.
  var isResponseDamaged: Bool { responsePlace == .record && state == .completed && response == nil }

  func responseKey(now: StoreInstant) -> String? {
    guard state == .completed, now < since + span else { return nil }
    switch responsePlace {
    case .ownKey: return Self.responseKey(owner)
    case .sharedKey: return "r"
    case .record, nil: return nil
    }
  }

  static func responseKey(_ owner: OwnerToken) -> String { "r:" + owner.high.hexText + owner.low.hexText }

  private static func token(_ word: UnsafeRawBufferPointer) -> OwnerToken? {
    guard !word.isEmpty, word.count <= 32 else { return nil }
    var token = OwnerToken(high: 0, low: 0)
    for byte in word {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - 0x30
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - 0x57
      default: return nil
      }
      token.high = token.high << 4 | token.low >> 60
      token.low = token.low << 4 | UInt64(digit)
    }
    return token
  }

  private struct Flags {
    var onlyRejectedSoFar = false
    var followsUnknown = false
    var uncountedAttempts = 0
    var responsePlace: ResponsePlace?
    var isEncoded = false
    var fencedUntil: StoreInstant?

    /// Parses the word; `nil` if it has a flag that this version does not know.
    init?(_ word: UnsafeRawBufferPointer) {
      var isCount = false
      for flag in word {
        switch flag {
        case UInt8(ascii: "o"): onlyRejectedSoFar = true
        case UInt8(ascii: "u"): followsUnknown = true
        case ResponsePlace.record.rawValue, ResponsePlace.ownKey.rawValue, ResponsePlace.sharedKey.rawValue:
          responsePlace = ResponsePlace(rawValue: flag)
        case encodedFlag: isEncoded = true
        case UInt8(ascii: "n"): isCount = true
        case UInt8(ascii: "f"): (fencedUntil, isCount) = (StoreInstant(milliseconds: 0), false)
        case UInt8(ascii: "0")...UInt8(ascii: "9") where isCount:
          guard uncountedAttempts < Claim.attemptsPerGeneration else { return nil }
          uncountedAttempts = uncountedAttempts * 10 + Int(flag - 0x30)
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
          guard let until = fencedUntil?.milliseconds, until < 1 << 53 else { return nil }
          fencedUntil = StoreInstant(milliseconds: until * 10 + Int64(flag - 0x30))
        case UInt8(ascii: "-"): break
        default: return nil
        }
      }
    }
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

  /// The parts, which are separated by spaces.
  private struct Cursor {
    private let bytes: UnsafeRawBufferPointer
    /// Past the end after the last part.
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var remainder: UnsafeRawBufferPointer? {
      position <= bytes.count ? UnsafeRawBufferPointer(rebasing: bytes[position...]) : nil
    }

    mutating func next() -> UnsafeRawBufferPointer? {
      guard position <= bytes.count else { return nil }
      let start = position
      let end = ASCII.index(of: ASCII.space, in: bytes, start..<bytes.count) ?? bytes.count
      position = end + 1
      return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    /// The rest of the next part if it begins with a mark; `nil` if it does not.
    mutating func next(after mark: UInt8) -> UnsafeRawBufferPointer? {
      guard position < bytes.count, bytes[position] == mark else { return nil }
      return next().map { UnsafeRawBufferPointer(rebasing: $0.dropFirst()) }
    }

    /// The next parts with the spaces between them.
    mutating func next(_ count: Int) -> UnsafeRawBufferPointer? {
      let start = position
      for _ in 0..<count where next() == nil { return nil }
      return UnsafeRawBufferPointer(rebasing: bytes[start..<position - 1])
    }

    mutating func number(_ maxDigits: Int = 18) -> Int64? {
      guard let word = next(), !word.isEmpty, word.count <= maxDigits else { return nil }
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

  /// Returns the record's standing, with a response from a key of its own. If that should be one and is none, Redis has
  /// evicted it.
  func standing(now: StoreInstant, response: Outcome?) -> Standing {
    if fencedUntil != nil, now >= end { return .absent }
    switch state {
    case .forgotten: return .absent
    case .released: return .released(attempt: attempt)
    case .inFlight where now < since + span:
      return .inFlight(leaseLeft: min(since + span - now, span), attempt: attempt)
    case .inFlight, .unknown:
      let age = max(now - (since + span), 0)
      return age < unknownRetention ? .unknown(age: age, attempt: attempt) : .expired(attempt: attempt)
    case .completed:
      let expiresAt = since + span
      guard now < expiresAt, span > 0 else { return .expired(attempt: attempt) }
      return .completed(
        CompletedRecord(
          outcome: self.response ?? response ?? outcomeWithoutResponse, recordedAt: since,
          expiresAt: expiresAt, remaining: min(expiresAt - now, span), attempt: attempt))
    }
  }

  /// The record as an operator sees it.
  ///
  /// - Parameter standing: The standing; `nil` for that without a response from a key of its own.
  func view(_ id: RecordID, now: StoreInstant, standing: Standing? = nil) -> RecordView {
    RecordView(
      id: id, standing: standing ?? self.standing(now: now, response: nil), firstSeen: firstSeen, now: now,
      attribution: attribution, isHeld: state == .inFlight, owner: owner, remember: remember,
      recipe: Recipe(text: recipe))
  }

  private var outcomeWithoutResponse: Outcome {
    flags.isEncoded
      ? .encoded(EncodedOutcome(status: status, location: location, response: nil))
      : .statusOnly(status: status, location: location)
  }
}
