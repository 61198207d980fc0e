/// What a complete answer of the backend means for its record.
public enum OutcomeClass: String, Sendable, CaseIterable {
  /// Stored and replayed.
  case final
  /// Not stored; the next delivery runs.
  case retry
  /// Nobody knows whether the backend did it.
  case unknown
}

/// Which status belongs to which class: a table of the 500 codes from 100 to 599, made once for each route.
public struct OutcomeTable: Hashable, Sendable {
  /// A status code, or a hundred of them.
  public enum Pattern: Hashable, Sendable {
    case status(Int)
    /// `2` for 2xx.
    case hundred(Int)
  }

  private var classes: [OutcomeClass]
  /// The single statuses that the route itself lists.
  private var named: Set<Int> = []
  /// The patterns that the route itself lists, as it lists them.
  public let own: [OutcomeClass: [Pattern]]

  /// The defaults of the contract (section 4), then the route's own patterns over them: of a hundred first, of one
  /// status after, so that the most specific wins.
  public init(final: [Pattern] = [], retry: [Pattern] = [], unknown: [Pattern] = []) {
    own = [.final: final, .retry: retry, .unknown: unknown]
    classes = Array(repeating: .final, count: 600)
    for status in [401, 403, 407, 408, 421, 423, 425, 429, 503] { classes[status] = .retry }
    for status in [502, 504] { classes[status] = .unknown }
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
  }

  /// The class of a status; one outside 100 to 599 is unknown.
  public subscript(status: Int) -> OutcomeClass {
    (100..<600).contains(status) ? classes[status] : .unknown
  }

  /// Whether the route itself says what this status means, not only its hundred or the contract.
  public func isNamed(status: Int) -> Bool { named.contains(status) }
}
