/// The single counts of a route, which it has besides its histograms.
public enum RouteCount: Int, CaseIterable, Sendable {
  case replayFromCache, replayFromStore, replayAfterWait
  case retryAfterUnknown, retryAfterRelease, retryAfterForget
  case failedTransport, failedAuth, failedValidation, failedBackend, failedStore, failedOverload
  case duplicateRefused, lateResponses, outcomesLost, unknownReturns, requestBytes, responseBytes,
    unprotectedKeys
  case reconciledApplied, reconciledAbsent, reconciledUnknown
  case clientRetries, clientRetryExhausted, clientRetryLate, clientRetryOverBudget
  case batchItemsExecuted, batchItemsReplayed, batchItemsRefused
  case attemptsExhausted
  case unkeptNoLength, unkeptTooLarge, unkeptNoMemory, unkeptTooSlow
  case samePayloads, sharedKeys, weakKeys, rowsOfMismatches
  case payloadsUnderNewKey
}

/// The position of each number in a route's row of cells.
enum RouteLayout {
  private static let durations = Buckets.durations.cells
  private static let parts = RequestOutcome.allCases.count * durations
  private static let success = parts + RequestPart.allCases.count * durations
  private static let refusals = success + Buckets.attempts.cells
  private static let counts = refusals + RefusalReason.allCases.count
  private static let verdicts = counts + RouteCount.allCases.count
  static let size = verdicts + ShadowVerdict.allCases.count

  static func duration(_ outcome: RequestOutcome) -> Int { outcome.rawValue * durations }
  static func part(_ part: RequestPart) -> Int { parts + part.rawValue * durations }
  static var timeToSuccess: Int { success }
  static func refusal(_ reason: RefusalReason) -> Int { refusals + reason.rawValue }
  static func count(_ count: RouteCount) -> Int { counts + count.rawValue }
  static func shadow(_ verdict: ShadowVerdict) -> Int { verdicts + verdict.rawValue }
}

/// The counts of an event loop that belong to no route.
public enum LoopCount: Int, CaseIterable, Sendable {
  case leasesRenewed, leasesLapsed, claimsLost, supersededOwners, keysUnderOtherCaller
}

/// The position of each number in an event loop's own row of cells.
enum LoopLayout {
  private static let durations = Buckets.durations.cells
  private static let errors = (1 + StoreCommand.allCases.count) * durations
  private static let counts = errors + StoreCommand.allCases.count * StoreFailure.allCases.count
  static let wait = counts + LoopCount.allCases.count
  static let size = wait + durations

  static let lag = 0
  static func command(_ command: StoreCommand) -> Int { (1 + command.rawValue) * durations }
  static func error(_ command: StoreCommand, _ failure: StoreFailure) -> Int {
    errors + command.rawValue * StoreFailure.allCases.count + failure.rawValue
  }
  static func count(_ count: LoopCount) -> Int { counts + count.rawValue }
}
