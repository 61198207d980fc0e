import Idempotency
import Platform
import Wire

extension RedisCommandWriter {
  /// The limit of durations, about three hundred years, in milliseconds. Lua still writes sums of them exactly.
  private static let maxSpan: Int64 = 10_000_000_000_000

  mutating func span(_ span: Milliseconds) { number(Self.cut(span)) }

  mutating func token(argument token: OwnerToken) {
    argument(length: 32)
    self.token(token)
    literal("\r\n")
  }

  /// Writes `1 OWNER ` as an argument.
  mutating func owner(argument token: OwnerToken) {
    argument(length: 35)
    literal("1 ")
    self.token(token)
    literal(" \r\n")
  }

  /// Writes the arguments of a claim, which is refused as late from `deadline` on.
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

  static func capacity(of request: ClaimRequest) -> Int {
    640 + request.fingerprint.recipe.text.utf8.count
  }

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

  /// Writes the time to live of a key: the sum of the durations, at least the fence's remaining time, and 1 ms.
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

  /// Writes the same for a completed record. An earlier version that amends an operator's needs its `REMEMBER`.
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

/// The parts that a completion adds: the end of the record's text, and a response with a key of its own.
struct RedisCompletion {
  /// The length from which a response has a key of its own, in bytes. Lua's copies of the text cost Redis less up to
  /// here.
  static let maxLengthInRecord = 4096
  /// The same for a record that outlives its response: more memory than the response takes after its end.
  static let maxLengthInRememberedRecord = 1024

  /// The time by which a response of its own key outlives its retention: it is written before its record, and read
  /// after.
  static let readingTime: Milliseconds = 60_000

  private let status: Int
  private let location: String?
  private let response: RedisResponse?
  private let retention: Milliseconds
  let place: RedisRecord.ResponsePlace?
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

  var capacity: Int {
    64 + (location?.utf8.count ?? 0) + (place == .record ? response?.length ?? 0 : 0)
  }

  var hasFlags: Bool { place != nil || isEncoded }

  func writeFlags(to writer: inout RedisCommandWriter) {
    if let place { writer.byte(place.rawValue) }
    if isEncoded { writer.byte(RedisRecord.encodedFlag) }
  }

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

  func writeOwnKeyEnd(_ owner: OwnerToken, to writer: inout RedisCommandWriter) {
    guard place == .ownKey else { return }
    writer.literal(":r:")
    writer.token(owner)
  }

  /// The write of a response that has a key of its own.
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
