import CSimulation

/// Looks for a smaller world in which the same rule breaks: fewer faults, nodes, intents and batches.
struct Minimise {
  private var seed: UInt64
  private var plan: Plan
  private let rule: Int
  private let endsAt: Int64
  /// The number of worlds that were tried.
  private(set) var tries = 0

  /// `nil` if no rule breaks in the world.
  ///
  /// - Parameter seconds: The time for the search.
  init?(seed: UInt64, plan: Plan, seconds: Double) {
    endsAt = simulation_real_time() + Int64(seconds * 1e9)
    guard let first = World(seed: seed, plan: plan).run().violations.first else { return nil }
    self.seed = seed
    self.plan = plan
    rule = first.rule
  }

  /// The smallest world that was found.
  mutating func run() -> (seed: UInt64, plan: Plan) {
    var isSmaller = true
    while isSmaller {
      // The parts that make a world slow go first.
      isSmaller = dropFaults() || dropNodes() || drop(\.batches) || drop(\.intents) || simplify()
    }
    return (seed, plan)
  }

  /// Whether the rule breaks in a changed world too, which is then taken. A world with less in it has another schedule: a
  /// few other seeds are tried as well.
  private mutating func take(_ smaller: Plan) -> Bool {
    for number in 0..<8 where simulation_real_time() < endsAt {
      tries += 1
      let seed = seed &+ UInt64(number)
      let report = World(seed: seed, plan: smaller).run()
      guard report.violations.contains(where: { $0.rule == rule }) else { continue }
      (self.seed, plan) = (seed, smaller)
      return true
    }
    return false
  }

  private mutating func drop(_ numbers: WritableKeyPath<Plan, [Int]>) -> Bool {
    var size = plan[keyPath: numbers].count
    while size > 0 {
      for start in stride(from: 0, to: plan[keyPath: numbers].count, by: size) {
        var smaller = plan
        smaller[keyPath: numbers].removeSubrange(
          start..<min(start + size, plan[keyPath: numbers].count))
        if !(smaller.intents.isEmpty && smaller.batches.isEmpty), take(smaller) { return true }
      }
      size /= 2
    }
    return false
  }

  private mutating func dropFaults() -> Bool {
    for fault in plan.faults {
      var smaller = plan
      smaller.faults.removeAll { $0 == fault }
      if take(smaller) { return true }
    }
    return false
  }

  private mutating func dropNodes() -> Bool {
    guard plan.nodes > 1 else { return false }
    var smaller = plan
    smaller.nodes -= 1
    return take(smaller)
  }

  /// Less time, HTTP/1.1, and a store in memory.
  private mutating func simplify() -> Bool {
    var (shorter, older, lighter) = (plan, plan, plan)
    shorter.seconds = max(1, (plan.seconds / 2).rounded())
    older.isHTTP2 = false
    older.hasHTTP2Clients = false
    lighter.topology = .memory
    if shorter.seconds < plan.seconds, take(shorter) { return true }
    if plan.isHTTP2 || plan.hasHTTP2Clients, take(older) { return true }
    return plan.topology != .memory && take(lighter)
  }
}
