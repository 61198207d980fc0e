/// The meaning of the backend's complete response for its record.
public enum OutcomeClass: String, Sendable, CaseIterable {
  /// The response is stored and replayed.
  case final
  /// The response is not stored, and the next delivery runs.
  case retry
  /// It is not known whether the backend executed the request.
  case unknown
}

/// The class of each status code from 100 to 599, computed once for each route, and the rules that look at more.
public struct OutcomeTable: Hashable, Sendable {
  /// A status code, or a class of one hundred codes.
  public enum Pattern: Hashable, Sendable {
    case status(Int)
    /// A class of codes by its first digit: 2 for 2xx.
    case hundred(Int)
  }

  /// Nothing was executed: the client is told to go elsewhere (307, 308) or to repeat the request, a credential, a
  /// condition, a token or the connection was at fault, or a CDN did not reach the origin (521 to 530).
  private static let retried = [
    307, 308, 401, 403, 407, 408, 412, 419, 421, 423, 425, 428, 429, 503, 521, 522, 523, 525, 526, 529, 530,
  ]
  /// The statuses by which an intermediary says that it does not know either: a gateway, or a CDN (520, 524, 527).
  public static let ofIntermediaries = [502, 504, 520, 524, 527]

  private var classes: [OutcomeClass]
  /// The single status codes that the route lists itself.
  private var named: Set<Int> = []
  /// The patterns that the route lists itself, in its order.
  public let own: [OutcomeClass: [Pattern]]
  /// The table that the route names; `standard` for none.
  public let preset: OutcomePreset
  /// The rules of the route, and behind them those of the preset; `nil` for none. They count before the classes.
  public let rules: OutcomeRules?

  /// Creates a table from the defaults of the contract (section 6) and the route's own patterns.
  ///
  /// Patterns for a hundred codes override the defaults, and patterns for one code override both, so that the most
  /// specific pattern wins.
  public init(final: [Pattern] = [], retry: [Pattern] = [], unknown: [Pattern] = []) {
    self.init(final: final, retry: retry, unknown: unknown, preset: .standard, rules: [])
  }

  /// Creates a table of rules, behind which a preset counts.
  public init(_ preset: OutcomePreset, rules: [OutcomeRule] = []) {
    self.init(final: [], retry: preset.retried, unknown: [], preset: preset, rules: rules)
  }

  private init(
    final: [Pattern], retry: [Pattern], unknown: [Pattern], preset: OutcomePreset, rules: [OutcomeRule]
  ) {
    self.preset = preset
    self.rules = OutcomeRules(rules + preset.rules)
    own = [.final: final, .retry: retry, .unknown: unknown]
    classes = Array(repeating: .final, count: 600)
    for status in Self.retried { classes[status] = .retry }
    for status in Self.ofIntermediaries { classes[status] = .unknown }
    let lists = [(OutcomeClass.final, final), (.retry, retry), (.unknown, unknown)]
    for (outcome, patterns) in lists {
      for case .hundred(let hundred) in patterns {
        for status in hundred * 100..<hundred * 100 + 100 { classes[status] = outcome }
      }
    }
    for (outcome, patterns) in lists {
      for case .status(let status) in patterns {
        classes[status] = outcome
        named.insert(status)
      }
    }
    for status in 200..<600 {
      if let verdict = decided(status) { classes[status] = verdict.outcome }
    }
  }

  /// The class of a status code where no rule applies that looks at more; `unknown` for a code outside 100 to 599.
  public subscript(status: Int) -> OutcomeClass {
    (100..<600).contains(status) ? classes[status] : .unknown
  }

  /// The verdict of the first rule that decides by this status alone; `nil` if none does.
  public func decided(_ status: Int) -> OutcomeRule.Verdict? {
    rules?.list.first { $0.isByStatus && $0.fits(status: status) }?.verdict
  }

  /// The verdict on responses of this status where no rule applies that looks at more.
  public func verdict(byStatus status: Int) -> OutcomeRule.Verdict {
    if let verdict = decided(status) { return verdict }
    return switch self[status] {
    case .final: .final
    case .retry: .retry
    case .unknown: .unknown
    }
  }

  /// Whether responses of this status may get the verdict whatever values their fields and members have: by the status
  /// alone, or by a rule that wants a field or a member with any value.
  public func mayBe(_ verdict: OutcomeRule.Verdict, whateverValues status: Int) -> Bool {
    if self.verdict(byStatus: status) == verdict { return true }
    let rules = (rules?.list ?? []).filter { $0.fits(status: status) }
    return rules.indices.contains { index in
      let rule = rules[index]
      return rule.verdict == verdict && !rule.wantsValue
        && !rules[..<index].contains { $0.covers(conditionsOf: rule) }
    }
  }

  /// Whether responses of this status may be of class `retry`, at least by a rule that looks at more.
  public func mayBeRetried(_ status: Int) -> Bool {
    let isByRule = rules?.list.contains { $0.fits(status: status) && $0.verdict.outcome == .retry }
    return self[status] == .retry || isByRule ?? false
  }

  /// Whether the route lists this status code itself, and not only its hundred.
  public func isNamed(status: Int) -> Bool { named.contains(status) }

  /// Whether the route lists this status code or its hundred, or a rule decides by the status alone.
  public func isListed(status: Int) -> Bool {
    own.values.contains { $0.contains(.status(status)) || $0.contains(.hundred(status / 100)) }
      || decided(status) != nil
  }
}
