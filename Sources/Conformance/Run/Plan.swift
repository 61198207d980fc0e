/// The cases of a run, with the reasons for which some are left out, and what the run will send.
public struct Plan: Sendable {
  /// The cases that the user wants.
  public struct Selection: Equatable, Sendable {
    /// Sections (`2.6`) and cases (`2.6/marker`); empty: all.
    public var only: [String]
    /// The weakest level that is examined.
    public var level: Level

    public init(only: [String] = [], level: Level = .may) {
      self.only = only
      self.level = level
    }

    /// The first member of `only` that names nothing.
    public var unknown: String? {
      only.first { name in
        !Section.allCases.contains { $0.rawValue == name } && !Catalogue.cases.contains { $0.id == name }
      }
    }

    func takes(_ examined: Case) -> Bool {
      let isNamed = only.isEmpty || only.contains(examined.section.rawValue) || only.contains(examined.id)
      return isNamed && examined.level <= level
    }
  }

  public struct Entry: Sendable {
    public var examined: Case
    /// The verdict on a case that is left out.
    public var leftOut: Verdict?
  }

  public let entries: [Entry]
  private let readsOracle: Bool

  public init(_ setup: Setup, _ selection: Selection = Selection(), of cases: [Case] = Catalogue.cases) {
    readsOracle = setup.oracle?.endpoint != nil
    entries = cases.filter(selection.takes).map { examined in
      let missing = Need.allCases.filter { examined.needs.contains($0) && !setup.has($0) }
      // A case without its oracle is inconclusive even if it lacks more.
      guard let need = missing.first else {
        guard examined.isCostly, !selection.only.contains(examined.id) else {
          return Entry(examined: examined)
        }
        let reason = "sends \(examined.script.requests) requests: name it with --only"
        return Entry(examined: examined, leftOut: Verdict(.skip, reason))
      }
      return Entry(
        examined: examined, leftOut: Verdict(need == .oracle ? .inconclusive : .skip, need.reason))
    }
  }

  /// The distinct scripts, in their order; the first run is always the first.
  public var scripts: [Script] {
    var seen: Set<Script> = [.firstRun]
    return [.firstRun]
      + entries.filter { $0.leftOut == nil }.map(\.examined.script).filter { seen.insert($0).inserted }
  }

  /// The number of requests to the endpoint. Those that are repeated while one is in flight count once.
  public var requests: Int { scripts.map(\.requests).reduce(0, +) }

  /// The number of requests that may create something, at most.
  public var creating: Int { scripts.map(\.creating).reduce(0, +) }

  /// The number of requests to the oracle: one that must succeed before the first script, and two for each script.
  public var oracleRequests: Int { readsOracle ? 1 + 2 * scripts.count : 0 }

  /// The cases and what they would send, one in a line.
  public func preview(of setup: Setup) -> String {
    let lines = entries.map { entry in
      let examined = entry.examined
      let reason = entry.leftOut.map { "  (\($0.kind.rawValue): \($0.reason))" } ?? ""
      return "\(examined.id)  \(examined.level.rawValue.uppercased())  \(examined.title)\(reason)"
    }
    return (lines + [announcement(of: setup)]).joined(separator: "\n")
  }

  /// The statement of what a run will send, which precedes it.
  public func announcement(of setup: Setup) -> String {
    let reads = oracleRequests == 0 ? "" : ", and \(oracleRequests) to the oracle of executions"
    let cases = entries.count { $0.leftOut == nil }
    return "\(cases) case\(cases == 1 ? "" : "s"): \(requests) requests to \(setup.redactedURL)\(reads); "
      + "up to \(creating) of them may create something"
  }
}
