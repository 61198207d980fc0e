import Idempotency
import Platform
import Wire

/// The parts of a record as arguments of the scripts.
extension RedisCommandWriter {
  /// The limit of durations, about three hundred years, in milliseconds. Sums of them have 14 digits, which Lua still
  /// writes exactly.
  private static let maxSpan: Int64 = 10_000_000_000_000

  mutating func span(_ span: Milliseconds) { number(Self.cut(span)) }

  mutating func token(argument token: OwnerToken) {
    argument(length: 32)
    self.token(token)
    literal("\r\n")
  }

  /// Writes the beginning of an owner's record, `1 OWNER `, as an argument.
  mutating func owner(argument token: OwnerToken) {
    argument(length: 35)
    literal("1 ")
    self.token(token)
    literal(" \r\n")
  }

  /// Writes the arguments of a claim.
  ///
  /// - Parameters:
  ///   - request: The claim.
  ///   - deadline: The time by the store's clock from which on the claim is refused as late.
  ///   - firstAttempt: The attempt number of a new record's first owner.
  mutating func claim(_ request: ClaimRequest, until deadline: StoreInstant, firstAttempt: Int) {
    token(argument: request.owner)
    argument(deadline.milliseconds)
    argument { $0.spans(of: request) }
    argument { $0.fingerprint(of: request) }
    timeToLive(request.lease, request.unknownRetention, request.remember)
    switch request.takeOver {
    case .never: argument(-1)
    case .afterSettle(let settle): argument { $0.span(settle) }
    case .ofLoss(let loss, let settle): argument { $0.span(max(settle, loss.minAge(at: .now))) }
    }
    argument(Int64(firstAttempt))
    argument { $0.attribution(request.attribution) }
  }

  /// Writes `LEASE UNKNOWN REMEMBER`.
  mutating func spans(of request: ClaimRequest) {
    span(request.lease)
    literal(" ")
    span(request.unknownRetention)
    literal(" ")
    span(request.remember)
  }

  /// Writes `FINGERPRINT RECIPE`.
  mutating func fingerprint(of request: ClaimRequest) {
    digest(request.fingerprint.digest)
    literal(" ")
    text(request.fingerprint.recipe.text)
  }

  /// The maximum number of bytes that `claim` writes for usual names.
  static func capacity(of request: ClaimRequest) -> Int {
    640 + request.fingerprint.recipe.text.utf8.count
  }

  /// Writes ` @` and the text of an attribution, if there is one.
  mutating func attribution(_ attribution: Attribution?, cause: LossCause? = nil) {
    guard let attribution else { return }
    literal(" ")
    byte(RedisRecord.attributionMark)
    text(attribution.route)
    literal(",")
    if let digest = attribution.keyDigest { text(digest) }
    literal(",")
    if let digest = attribution.callerDigest { text(digest) }
    literal(",")
    text(attribution.node)
    guard let cause else { return }
    literal(",")
    text(cause.rawValue)
  }

  /// Writes the time to live of a key: the sum of the durations, but at least the remaining time of the fence, and at
  /// least the 1 ms that Redis requires.
  mutating func timeToLive(
    _ first: Milliseconds, _ second: Milliseconds = 0, _ third: Milliseconds = 0, over fence: Fence? = nil
  ) {
    argument(max(1, Self.cut(fence?.left ?? 0), Self.cut(first) + Self.cut(second) + Self.cut(third)))
  }

  private static func cut(_ span: Milliseconds) -> Int64 { min(max(span.count, 0), maxSpan) }

  /// Writes the two arguments `1 OWNER ` and `ATTEMPT FIRST`.
  mutating func ownership(_ claim: Claim) {
    owner(argument: claim.owner)
    argument {
      $0.number(claim.attempt)
      $0.literal(" ")
      $0.number(claim.firstSeen.milliseconds)
    }
  }

  /// Writes `SPAN UNKNOWN REMEMBER FLAGS FINGERPRINT RECIPE` and the attribution of an open record.
  mutating func record(_ claim: Claim, span: Milliseconds, recipe: String, cause: LossCause? = nil) {
    self.span(span)
    literal(" ")
    self.span(claim.unknownRetention)
    literal(" ")
    self.span(claim.remember)
    literal(" ")
    if claim.onlyRejectedSoFar { literal("o") }
    if claim.followsUnknown { literal("u") }
    if claim.uncountedAttempts > 0 {
      literal("n")
      number(claim.uncountedAttempts)
    }
    let hasFlags = claim.onlyRejectedSoFar || claim.followsUnknown || claim.uncountedAttempts > 0
    end(claim, recipe: recipe, hasFlags: hasFlags, cause: cause)
  }

  /// Writes the same for a completed record, which is never unknown and needs no flags about earlier attempts. An
  /// earlier version that amends what an operator has put there needs its `REMEMBER`.
  mutating func record(_ claim: Claim, with completion: Completion, _ kept: RedisCompletion, recipe: String) {
    span(completion.retention)
    literal(" 0 ")
    let needsRemember = completion.remember > completion.retention || claim.owner.isOfOperator
    span(needsRemember ? completion.remember : 0)
    literal(" ")
    kept.writeFlags(to: &self)
    end(claim, recipe: recipe, hasFlags: kept.hasFlags)
    kept.writeEnd(to: &self)
  }

  private mutating func end(_ claim: Claim, recipe: String, hasFlags: Bool, cause: LossCause? = nil) {
    if let fence = claim.fence {
      literal("f")
      number(fence.until.milliseconds)
    } else if !hasFlags {
      literal("-")
    }
    literal(" ")
    digest(claim.fingerprint.digest)
    literal(" ")
    text(recipe)
    attribution(claim.attribution, cause: cause)
  }
}

/// The parts that a completion adds: the end of the record's text, and the response if it has a key of its own.
struct RedisCompletion {
  /// The length from which a response has a key of its own, in bytes. Up to here, the second key costs Redis more than
  /// the copies that Lua makes of the text.
  static let maxLengthInRecord = 4096
  /// The same for a record that outlives its response, by no more than `retention`: up to here, the second key takes
  /// more memory than the response does after its end.
  static let maxLengthInRememberedRecord = 1024

  /// The time by which a response of its own key outlives its retention. It is written before its record, whose
  /// retention begins with the completion, and read after it.
  static let readingTime: Milliseconds = 60_000

  private let status: Int
  private let location: String?
  private let response: RedisResponse?
  private let retention: Milliseconds
  /// The place of the response; `nil` if it is not kept.
  let place: RedisRecord.ResponsePlace?
  /// Whether location and response are encoded.
  let isEncoded: Bool

  init(_ completion: Completion) {
    status = completion.outcome.status
    response = RedisResponse(completion.outcome)
    switch completion.outcome {
    case .whole(let response):
      location = response.location
      isEncoded = false
    case .statusOnly(_, let location):
      self.location = location
      isEncoded = false
    case .encoded(let encoded):
      location = encoded.location
      isEncoded = true
    }
    retention = completion.retention
    place = response.map { response in
      let (retention, remember) = (completion.retention, completion.remember)
      // No response stays in Redis for longer than twice its retention.
      let max =
        remember <= retention
        ? Self.maxLengthInRecord : remember / 2 <= retention ? Self.maxLengthInRememberedRecord : 0
      return response.length <= max ? .record : .ownKey
    }
  }

  /// The maximum number of bytes that `writeEnd` writes.
  var capacity: Int {
    64 + (location?.utf8.count ?? 0) + (place == .record ? response?.length ?? 0 : 0)
  }

  /// Whether `writeFlags` writes anything.
  var hasFlags: Bool { place != nil || isEncoded }

  /// Writes the flags of the outcome: the place of the response, and whether it is encoded.
  func writeFlags(to writer: inout RedisCommandWriter) {
    if let place { writer.byte(place.rawValue) }
    if isEncoded { writer.byte(RedisRecord.encodedFlag) }
  }

  /// Writes ` STATUS`, and the location or the response if there is one.
  func writeEnd(to writer: inout RedisCommandWriter) {
    writer.literal(" ")
    writer.number(status)
    if place == .record, let response {
      writer.literal(" ")
      let start = writer.count
      response.write(to: &writer)
      invariant(writer.count - start == response.length, "a response is recorded in another length")
    } else if let location {
      writer.literal(" ")
      writer.text(location)
    }
  }

  /// Writes the end of the response's key from `:r:` on, if the response has a key of its own.
  func writeOwnKeyEnd(_ owner: OwnerToken, to writer: inout RedisCommandWriter) {
    guard place == .ownKey else { return }
    writer.literal(":r:")
    writer.token(owner)
  }

  /// The write of a response that has a key of its own; `nil` if there is none.
  ///
  /// - Parameters:
  ///   - keys: The keys of the namespace.
  ///   - id: The record.
  ///   - owner: The owner that completes the record.
  func ownKeyWrite(_ keys: RedisKeys, _ id: RecordID, _ owner: OwnerToken) -> RedisPlainCommand? {
    guard place == .ownKey, let response else { return nil }
    let key = keys.response(id, RedisRecord.responseKey(owner))
    return RedisPlainCommand(capacity: 128 + key.utf8.count + response.length) {
      [retention] writer in
      writer.literal("*5\r\n$3\r\nSET\r\n")
      writer.argument(key)
      writer.argument(length: response.length)
      let start = writer.count
      response.write(to: &writer)
      invariant(writer.count - start == response.length, "a response is written in another length")
      writer.literal("\r\n$2\r\nPX\r\n")
      writer.timeToLive(retention, Self.readingTime)
    }
  }
}
