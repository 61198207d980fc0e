import Conformance

/// A mistake that a server can make, and the case that finds it.
enum Flaw: String, CaseIterable {
  case ignoresKeys
  case runsDuplicatesInFlight
  case waitsInFlight
  case otherStatusInFlight
  case comparesNoPayloads
  case runsOtherPayloads
  case forgetsAfterMismatch
  case otherStatusOnMismatch
  case quotesFirstRequestOnMismatch
  case refusesQuotedKeys
  case ignoresMalformedKeys
  case takesEmptyKeys
  case takesTwoKeys
  case runsWithoutKey
  case runsBeforeItRefuses
  case describesNothing
  case sharesKeysAmongCallers
  case comparesPayloadsAmongCallers
  case replaysWithoutCredentials
  case examinesKeysFirst
  case changesReplays
  case replaysWithOtherStatus
  case losesFields
  case fingerprintsHeaders
  case replaysForOtherMethods
  case failsOnQuotes
  case joinsKeys
  case dropsSeparators
  case ignoresLetterCase
  case cutsKeys
  case cutsLongKeys
  case documentsNothing
  case hidesExpiry
  case runsPipelinedDuplicates
  case limitsTheRate
  case forgetsTheOldest

  /// The id of the case, and the verdict that it comes to.
  var found: (id: String, kind: Verdict.Kind) {
    switch self {
    case .ignoresKeys: ("2.6/retry-runs-once", .fail)
    case .runsDuplicatesInFlight: ("2.6/in-flight-runs-once", .fail)
    case .waitsInFlight: ("2.6/in-flight-conflict", .fail)
    case .otherStatusInFlight: ("2.7/in-flight-409", .warn)
    case .comparesNoPayloads: ("2.2/other-payload-refused", .fail)
    case .runsOtherPayloads: ("2.2/other-payload-not-run", .fail)
    case .forgetsAfterMismatch: ("2.7/reuse-refused-again", .fail)
    case .otherStatusOnMismatch: ("2.7/reuse-status", .warn)
    case .quotesFirstRequestOnMismatch: ("5/mismatch-reveals-nothing", .fail)
    case .refusesQuotedKeys: ("2.1/quoted", .fail)
    case .ignoresMalformedKeys: ("2.1/unterminated", .warn)
    case .takesEmptyKeys: ("2.1/empty-value", .info)
    case .takesTwoKeys: ("2.1/repeated", .warn)
    case .runsWithoutKey: ("2.7/missing-400", .warn)
    case .runsBeforeItRefuses: ("2.7/missing-not-run", .fail)
    case .describesNothing: ("2.7/reuse-described", .warn)
    case .sharesKeysAmongCallers: ("5/other-caller-sees-nothing", .fail)
    case .comparesPayloadsAmongCallers: ("5/other-caller-learns-nothing", .fail)
    case .replaysWithoutCredentials: ("5/no-replay-without-credentials", .fail)
    case .examinesKeysFirst: ("2.7/unauthenticated-first", .warn)
    case .changesReplays: ("2.6/retry-same-result", .warn)
    case .replaysWithOtherStatus: ("2.6/retry-same-result", .warn)
    case .losesFields: ("2.6/retry-same-fields", .warn)
    case .fingerprintsHeaders: ("2.4/changing-headers", .warn)
    case .replaysForOtherMethods: ("2.2/other-method", .warn)
    case .failsOnQuotes: ("5/key-with-quotes", .warn)
    case .joinsKeys: ("5/keys-stay-apart", .fail)
    case .dropsSeparators: ("5/key-separators", .fail)
    case .ignoresLetterCase: ("5/key-letter-case", .fail)
    case .cutsKeys: ("5/key-endings", .fail)
    case .cutsLongKeys: ("5/long-key-endings", .fail)
    case .documentsNothing: ("2.5/documentation", .warn)
    case .hidesExpiry: ("2.3/expiry-published", .warn)
    case .limitsTheRate: ("2.6/retry-same-result", .inconclusive)
    case .forgetsTheOldest: ("beyond/thousand-keys", .warn)
    case .runsPipelinedDuplicates: ("beyond/pipelined", .fail)
    }
  }
}
