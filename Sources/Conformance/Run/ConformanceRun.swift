import Crypto
import NIOSSL
import Platform
import Wire

/// A check of one endpoint, from the first request to the report.
public struct ConformanceRun: Sendable {
  /// The certificates of `--ca` cannot be used.
  public struct BadAuthority: Error, CustomStringConvertible {
    public let description: String
  }

  private let setup: Setup
  private let plan: Plan
  private let tls: NIOSSLContext?

  /// Prepares a check, and sends nothing. `authority` is a file of trusted certificates; `nil` takes the system's.
  public init(_ setup: Setup, _ plan: Plan, authority: String? = nil) throws(BadAuthority) {
    self.setup = setup
    self.plan = plan
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = ["http/1.1"]
    if let authority { configuration.trustRoots = .file(authority) }
    do {
      tls = try NIOSSLContext(configuration: configuration)
    } catch {
      let text = authority.map { "\($0) holds no certificates in PEM" }
      throw BadAuthority(description: text ?? "the system's certificates: \(error)")
    }
  }

  /// Reads the oracle once, which creates nothing. Returns the reason for which it cannot be read; `nil` if it can.
  public func oracleFault() async throws(NotReached) -> String? {
    try await ScriptRunner(composer: Composer(setup, style: .quoted), tls: tls).oracleFault()
  }

  /// Runs all scripts and judges their evidence; the first alone where the endpoint does not accept the request.
  ///
  /// - Parameter onProgress: Called before each script with the number of those that have ended, and of all.
  public func run(
    onProgress: @Sendable (_ done: Int, _ all: Int) -> Void = { _, _ in }
  ) async throws(NotReached) -> Report {
    onProgress(0, plan.scripts.count)
    let (runner, first) = try await firstRun()
    let isAccepted = first[0]?.isSuccess == true
    var evidence: [Script: Evidence] = [.firstRun: first]
    if isAccepted {
      for script in plan.scripts.dropFirst() {
        onProgress(evidence.count, plan.scripts.count)
        evidence[script] = try await runner.run(script)
      }
    }
    let likeness = ResultLikeness(evidence, setup.oracle)
    evidence = evidence.mapValues(likeness.weighed)
    let style = runner.composer.style
    return Report(setup: setup, keyStyle: style, isAccepted: isAccepted, results: results(evidence))
  }

  /// The first run, with a quoted key or, where that is refused, with a bare one.
  private func firstRun() async throws(NotReached) -> (ScriptRunner, Evidence) {
    var quoted = ScriptRunner(composer: Composer(setup, style: .quoted), tls: tls)
    let first = try await quoted.runFirst()
    guard first[0]?.isSuccess != true else { return (quoted, first) }
    var bare = ScriptRunner(composer: Composer(setup, style: .bare), tls: tls)
    let second = try await bare.runFirst()
    return second[0]?.isSuccess == true ? (bare, second) : (quoted, first)
  }

  private func results(_ evidence: [Script: Evidence]) -> [CaseResult] {
    let first = evidence[.firstRun]
    let outcome = first?[0].map { "\($0.status)" } ?? first?.absence(0) ?? "no response"
    let refusal = "the request itself is not accepted (\(outcome))"
    return plan.entries.map { entry in
      let examined = entry.examined
      if let leftOut = entry.leftOut { return CaseResult(examined, leftOut) }
      guard let evidence = evidence[examined.script] else {
        return CaseResult(examined, Verdict(.inconclusive, refusal))
      }
      if evidence.responses.contains(where: { $0.status == 429 }) {
        return CaseResult(examined, Verdict(.inconclusive, "the endpoint limits the rate (429)"), evidence)
      }
      return CaseResult(examined, Verdict(examined.judge(evidence), at: examined.level), evidence)
    }
  }
}

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

/// Keys that no run has used before: UUIDs of version 4, from the system's random numbers.
enum FreshKeys {
  static func make(_ names: [String]) -> [String: String] {
    var entropy = Entropy()
    return Dictionary(uniqueKeysWithValues: names.map { ($0, uuid(entropy.next(), entropy.next())) })
  }

  static func uuid(_ high: UInt64, _ low: UInt64) -> String {
    let digits = (high & ~0xF000 | 0x4000).hexText + (low & ~(0b11 << 62) | 0b10 << 62).hexText
    var text = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { text.append("-") }
      text.append(digit)
    }
    return text
  }
}

/// The texts by which a refusal would give away the first request: its payload's own, and its digests.
enum Confidential {
  static func texts(of payloads: Payloads) -> [String] {
    payloads.confidential + [
      hexadecimal(SHA256.hash(data: payloads.first)), hexadecimal(Insecure.SHA1.hash(data: payloads.first)),
      hexadecimal(Insecure.MD5.hash(data: payloads.first)),
    ]
  }

  private static func hexadecimal(_ digest: some Sequence<UInt8>) -> String {
    digest.map(\.hexText).joined()
  }
}
