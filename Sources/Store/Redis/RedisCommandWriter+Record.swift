import Idempotency

/// The parts of a record as arguments of the scripts.
extension RedisCommandWriter {
  /// The limit of durations, about three hundred years, in milliseconds. Sums of them have 14 digits, which Lua still
  /// writes exactly.
  private static let greatestSpan: Int64 = 10_000_000_000_000

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
  mutating func claim(_ request: ClaimRequest, until deadline: StoreInstant) {
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

  private static func cut(_ span: Milliseconds) -> Int64 { min(max(span.count, 0), greatestSpan) }

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
    isAnswerKept: Bool = false
  ) {
    self.span(span)
    literal(" ")
    self.span(claim.unknownRetention)
    literal(" ")
    self.span(remember ?? claim.remember)
    literal(" ")
    if claim.onlyRejectedSoFar { literal("o") }
    if claim.followsUnknown { literal("u") }
    if isAnswerKept { literal("k") }
    if let fence = claim.fence {
      literal("f")
      number(fence.until.milliseconds)
    } else if !claim.onlyRejectedSoFar, !claim.followsUnknown, !isAnswerKept {
      literal("-")
    }
    literal(" ")
    digest(claim.fingerprint.digest)
    literal(" ")
    text(recipe)
  }
}

/// The parts that a completion adds: the end of the record's text, and the response if it is kept.
struct RedisCompletion {
  private let status: Int
  private let location: String?
  private let response: RecordedResponse?

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
  }

  var isKept: Bool { response != nil }

  /// The maximum number of bytes that it writes.
  var capacity: Int { 64 + (location?.utf8.count ?? 0) + (response.map(RedisResponse.length) ?? 0) }

  /// Writes ` STATUS[ LOCATION]`.
  func writeEnd(to writer: inout RedisCommandWriter) {
    writer.literal(" ")
    writer.number(status)
    guard let location else { return }
    writer.literal(" ")
    writer.text(location)
  }

  /// Writes the response as one argument, which is empty if it is not kept.
  func writeAnswer(to writer: inout RedisCommandWriter) {
    guard let response else { return writer.argument("") }
    writer.argument(length: RedisResponse.length(response))
    RedisResponse.write(response, to: &writer)
    writer.literal("\r\n")
  }
}
