import NIOSSL

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
