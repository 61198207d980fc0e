import Idempotency

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

  /// Writes the arguments of a claim.
  ///
  /// - Parameters:
  ///   - request: The claim.
  ///   - deadline: The time by the store's clock from which on the claim is refused as late.
  ///   - firstAttempt: The attempt number of a new record's first owner.
  mutating func claim(_ request: ClaimRequest, until deadline: StoreInstant, firstAttempt: Int) {
    let recipe = request.fingerprint.recipe.text
    token(argument: request.owner)
    argument(deadline.milliseconds)
    argument {
      $0.span(request.lease)
      $0.literal(" ")
      $0.span(request.unknownRetention)
      $0.literal(" ")
      $0.span(request.remember)
    }
    argument {
      $0.digest(request.fingerprint.digest)
      $0.literal(" ")
      $0.text(recipe)
    }
    timeToLive(request.lease, request.unknownRetention, request.remember)
    switch request.takeOver {
    case .never: argument(-1)
    case .afterSettle(let settle): argument { $0.span(settle) }
    }
    argument(Int64(firstAttempt))
  }

  /// The maximum number of bytes that `claim` writes.
  static func capacity(of request: ClaimRequest) -> Int {
    512 + request.fingerprint.recipe.text.utf8.count
  }

  /// Writes the time to live of a key: the sum of the durations, but at least the remaining time of the fence, and at
  /// least the 1 ms that Redis requires.
  mutating func timeToLive(
    _ first: Milliseconds, _ second: Milliseconds = 0, _ third: Milliseconds = 0, over fence: Fence? = nil
  ) {
    argument(max(1, Self.cut(fence?.left ?? 0), Self.cut(first) + Self.cut(second) + Self.cut(third)))
  }

  private static func cut(_ span: Milliseconds) -> Int64 { min(max(span.count, 0), maxSpan) }

  /// Writes the two arguments `OWNER` and `ATTEMPT FIRST`.
  mutating func ownership(_ claim: Claim) {
    token(argument: claim.owner)
    argument {
      $0.number(claim.attempt)
      $0.literal(" ")
      $0.number(claim.firstSeen.milliseconds)
    }
  }

  /// Writes `SPAN UNKNOWN REMEMBER FLAGS FINGERPRINT RECIPE`.
  mutating func record(
    _ claim: Claim, span: Milliseconds, remember: Milliseconds? = nil, recipe: String,
    responsePlace: RedisRecord.ResponsePlace? = nil
  ) {
    self.span(span)
    literal(" ")
    self.span(claim.unknownRetention)
    literal(" ")
    self.span(remember ?? claim.remember)
    literal(" ")
    if claim.onlyRejectedSoFar { literal("o") }
    if claim.followsUnknown { literal("u") }
    if let responsePlace { byte(responsePlace.rawValue) }
    if let fence = claim.fence {
      literal("f")
      number(fence.until.milliseconds)
    } else if !claim.onlyRejectedSoFar, !claim.followsUnknown, responsePlace == nil {
      literal("-")
    }
    literal(" ")
    digest(claim.fingerprint.digest)
    literal(" ")
    text(recipe)
  }
}

/// The parts that a completion adds: the end of the record's text, and the response if it has a key of its own.
struct RedisCompletion {
  /// The length from which a response has a key of its own, in bytes. Up to here, the second key costs Redis more than the
  /// copies that Lua makes of the text.
  static let maxLengthInRecord = 4096

  private let status: Int
  private let location: String?
  private let response: RecordedResponse?
  private let retention: Milliseconds
  /// The place of the response; `nil` if it is not kept.
  let place: RedisRecord.ResponsePlace?

  init(_ completion: Completion) {
    status = completion.outcome.status
    switch completion.outcome {
    case .kept(let response):
      self.response = response
      location = response.location
    case .notKept(_, let location):
      response = nil
      self.location = location
    }
    retention = completion.retention
    place = response.map { response in
      // The record outlives its response if it is remembered for longer.
      let fits = RedisResponse.length(response) <= Self.maxLengthInRecord
      return fits && completion.remember <= completion.retention ? .record : .ownKey
    }
  }

  /// The maximum number of bytes that `writeEnd` writes.
  var capacity: Int {
    64 + (location?.utf8.count ?? 0) + (place == .record ? response.map(RedisResponse.length) ?? 0 : 0)
  }

  /// Writes ` STATUS`, and the location or the response if there is one.
  func writeEnd(to writer: inout RedisCommandWriter) {
    writer.literal(" ")
    writer.number(status)
    if place == .record, let response {
      writer.literal(" ")
      RedisResponse.write(response, to: &writer)
    } else if let location {
      writer.literal(" ")
      writer.text(location)
    }
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
    return RedisPlainCommand(capacity: 128 + key.utf8.count + RedisResponse.length(response)) {
      [retention] writer in
      writer.literal("*5\r\n$3\r\nSET\r\n")
      writer.argument(key)
      writer.argument(length: RedisResponse.length(response))
      RedisResponse.write(response, to: &writer)
      writer.literal("\r\n$2\r\nPX\r\n")
      writer.timeToLive(retention)
    }
  }
}
