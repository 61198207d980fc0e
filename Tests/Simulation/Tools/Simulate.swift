import CSimulation
import Glibc

/// The commands of the simulator: `deploy/simulate --help`.
@main
enum Simulate {
  static func main() {
    makeHashesEqual()
    simulation_keep_memory()
    let options = Options(CommandLine.arguments.dropFirst())
    if let seed = options.seed {
      if options.minimises { minimise(seed, options) }
      exit(replay(seed, options.plan(of: seed)) ? 0 : 1)
    }
    exit(search(options) ? 0 : 1)
  }

  /// Swift's hash tables have an order of their own in each process, unless a variable says otherwise at its start. Another
  /// one has the C library keep far more of the pieces that are freed, by which a world takes a tenth less time.
  private static func makeHashesEqual() {
    let name = "SWIFT_DETERMINISTIC_HASHING"
    guard getenv(name) == nil else { return }
    setenv(name, "1", 1)
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=4096", 0)
    beginAnew()
  }

  /// Goes on in a new program of this process, which has none of its memory.
  private static func beginAnew() -> Never {
    var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
    execv("/proc/self/exe", &arguments)
    fatalError("the simulator cannot begin anew")
  }

  /// Runs one world again, and tells what happened to the record that broke a rule.
  private static func replay(_ seed: UInt64, _ plan: Plan) -> Bool {
    let world = World(seed: seed, plan: plan, keepsTimeline: true)
    print("seed \(seed): \(plan.summary)")
    let report = world.run()
    print(report.text)
    for violation in report.violations {
      print("rule \(violation.rule), \(violation.record): \(violation.text)")
      for line in world.judge.records[violation.record]?.timeline ?? [] { print("  \(line)") }
    }
    if getenv("SEMEL_SIMULATE_LOG") != nil { for line in world.judge.lines { print(line) } }
    return report.violations.isEmpty
  }

  private static func compare(_ first: World.Report, _ second: World.Report) {
    guard first.hash != second.hash else { return }
    print("seed \(first.seed): not the same twice: \(first.text); \(second.text)")
    exit(3)
  }

  /// Looks for a smaller world, and shows what happens in it.
  private static func minimise(_ seed: UInt64, _ options: Options) -> Never {
    let plan = options.plan(of: seed)
    guard var search = Minimise(seed: seed, plan: plan, seconds: options.searchSeconds) else {
      print("no rule breaks in the world of this seed")
      exit(2)
    }
    let (smallest, smallestPlan) = search.run()
    print("deploy/simulate --seed \(smallest) --plan '\(smallestPlan.text)'")
    print("found in \(search.tries) worlds")
    _ = replay(smallest, smallestPlan)
    exit(1)
  }

  /// The worlds after which the process begins anew: much of a world is never freed, since NIO holds it against a promise
  /// that it ends without a value.
  private static let maxWorlds = 100

  /// Runs one world after the other until a time is over.
  private static func search(_ options: Options) -> Bool {
    var totals = Totals.soFar ?? Totals(next: options.first)
    let end = totals.worlds + maxWorlds
    while !totals.isOver(options) {
      if totals.worlds == end {
        totals.keep()
        beginAnew()
      }
      let seed = totals.next
      let report = World(seed: seed, plan: options.plan(of: seed)).run()
      totals.add(report)
      if options.runsTwice {
        compare(report, World(seed: seed, plan: options.plan(of: seed)).run())
      }
      if options.printsHashes { print("\(seed) \(String(report.hash, radix: 16))") }
      for violation in report.violations {
        print("seed \(seed): rule \(violation.rule), \(violation.record): \(violation.text)")
      }
      totals.showProgress()
      if !report.violations.isEmpty, !options.goesOn { break }
    }
    print(Totals.lineStart + totals.text)
    return totals.violations == 0
  }
}

/// The sums of all worlds of a search.
struct Totals {
  private static let place = "SEMEL_SIMULATE_SO_FAR"

  private var begun = simulation_real_time()
  /// The seed of the next world.
  private(set) var next: UInt64
  private(set) var worlds = 0
  private var intents = 0
  private var deliveries = 0
  private var executions = 0
  private var faults = 0
  private var excused = 0
  private var virtual = 0.0
  private(set) var violations = 0
  private var shownAt = 0.0
  /// The hash of all hashes.
  private var hash: UInt64 = 0

  init(next: UInt64) { self.next = next }

  /// The state that an earlier program of this process has kept; `nil` if there was none.
  static var soFar: Totals? {
    guard let text = getenv(place).map({ String(cString: $0) }) else { return nil }
    let values = text.split(separator: " ").compactMap { UInt64($0) }
    guard values.count == 11 else { return nil }
    var totals = Totals(next: values[0])
    totals.begun = Int64(values[1])
    totals.virtual = Double(bitPattern: values[2])
    totals.hash = values[3]
    for (path, value) in zip(counts, values[4...]) { totals[keyPath: path] = Int(value) }
    return totals
  }

  private static let counts = [
    \Totals.worlds, \.intents, \.deliveries, \.executions, \.faults, \.excused, \.violations,
  ]

  /// Keeps the sums for the next program of this process.
  func keep() {
    let counts = Self.counts.map { UInt64(self[keyPath: $0]) }
    let values = [next, UInt64(begun), virtual.bitPattern, hash] + counts
    setenv(Self.place, values.map(String.init).joined(separator: " "), 1)
  }

  private var elapsed: Double { Double(simulation_real_time() - begun) / 1e9 }

  func isOver(_ options: Options) -> Bool {
    if let limit = options.worlds { return worlds >= limit }
    if let limit = options.intents { return intents >= limit }
    return elapsed >= options.seconds
  }

  mutating func add(_ report: World.Report) {
    worlds += 1
    next = report.seed &+ 1
    intents += report.intents
    deliveries += report.deliveries
    executions += report.executions
    faults += report.faults
    excused += report.excused
    virtual += report.seconds
    violations += report.violations.count
    hash = (hash ^ report.hash) &* 0x100_0000_01B3
  }

  /// Puts a line in the place of the one before on a terminal; empty elsewhere.
  static let lineStart = isatty(STDOUT_FILENO) == 0 ? "" : "\r\u{1B}[K"

  /// Shows a person the sums every second.
  mutating func showProgress() {
    fflush(nil)
    guard !Self.lineStart.isEmpty, elapsed - shownAt >= 1 else { return }
    shownAt = elapsed
    print(Self.lineStart + text, terminator: "")
  }

  var text: String {
    let rate = Int(Double(intents) / max(elapsed, 0.001))
    let hours = Double(Int(virtual / 36)) / 100
    return """
      \(worlds) worlds, \(intents) intents, \(deliveries) deliveries, \(executions) executions, \(faults) faults, \
      \(excused) excused, \(hours) virtual hours, \(rate) intents/s, violations: \(violations), \
      hash \(String(hash, radix: 16))
      """
  }
}

extension World.Report {
  var text: String {
    """
    \(intents) intents, \(deliveries) deliveries, \(executions) executions, \(faults) faults, \(events) events, \
    \(seconds) s, hash \(String(hash, radix: 16))
    """
  }
}
