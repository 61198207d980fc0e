import CSimulation
import Idempotency
import Proxy
import Store

/// Nodes, clients, a backend and a store in one thread, by a seed.
final class World {
  let seed: UInt64
  let plan: Plan
  let schedule: Schedule
  let judge: Judge
  let network: Network
  let store: StoreServer
  /// The servers of the real store; `nil` with one in memory.
  let redis: RedisServers?
  let origin: Origin
  private(set) var nodes: [Node] = []
  lazy var clients = Clients(of: self)
  private(set) lazy var operators = Operator(of: self)
  private(set) var intents: [Intent] = []
  private(set) var batches: [Batch] = []
  private var incarnations = 0
  var dice: Dice
  private(set) var faultCount = 0
  var isStorm = true
  /// The time for which Redis will take no connections once a record was given back; `nil` if that is not due.
  var hiccupSpan: Span?
  /// Whether the reply to the next completion is lost whose response has a key of its own in Redis.
  var losesCompletion = false

  init(seed: UInt64, plan: Plan? = nil, keepsTimeline: Bool = false) {
    self.seed = seed
    self.plan = plan ?? Plan(seed: seed)
    simulation_set_seed(seed)
    schedule = Schedule(seed: seed)
    judge = Judge(on: schedule)
    judge.keepsTimeline = keepsTimeline
    network = Network(on: schedule, seed: seed)
    store = StoreServer(on: schedule, seed: seed)
    redis = RedisServers(self.plan.topology, on: network, seed: seed)
    origin = Origin(
      on: network, port: Rules.originPort, seed: seed, judge: judge, isHTTP2: self.plan.isHTTP2)
    dice = Dice(seed, "world")
  }

  struct Report {
    var seed: UInt64
    var hash: UInt64
    var intents: Int
    var deliveries: Int
    var executions: Int
    var faults: Int
    var seconds: Double
    var events: Int
    var excused: Int
    var violations: [Violation]
  }

  /// Lets it all happen.
  func run() -> Report {
    begin()
    weather()
    if judge.violations.isEmpty { calm() }
    let report = Report(
      seed: seed, hash: schedule.hash, intents: judge.records.count, deliveries: judge.deliveries,
      executions: judge.executions, faults: faultCount, seconds: schedule.now.seconds,
      events: schedule.count, excused: judge.excused, violations: judge.violations)
    dismantle()
    return report
  }

  /// The faults that lose claims, or hold them up for longer than anybody waits.
  private static let heldUp: Set<Plan.Fault> = [.storeHiccup, .storeCutOff, .storeStalls, .storeLosses]

  /// The store's members in a node's configuration.
  var storeConfiguration: String { redis?.configuration ?? Rules.store }

  private func begin() {
    redis?.didFail = { [unowned self] in judge.storeFailures.append(schedule.now) }
    judge.redis = redis
    if redis != nil, !Self.heldUp.isDisjoint(with: plan.faults) { judge.claims = SentClaims(on: schedule) }
    if judge.keepsTimeline { redis?.journal = { [judge] in judge.log($0, about: nil) } }
    for index in 0..<plan.nodes {
      nodes.append(node(index))
      nodes[index].start()
    }
    if judge.keepsTimeline { store.journal = { [judge] in judge.log($1, about: $0.text) } }
    store.onChange = { [unowned self] id, step in follow(judge.record(of: id), step, "the store") }
    redis?.onChange = { [unowned self] id, step, server in
      follow(judge.record(of: id), step, "server \(server)")
    }
    redis?.onDamage = { [judge] id in
      judge.violation(1, judge.record(of: id), "the store: its text cannot be read", mayBeLost: false)
    }
  }

  private func node(_ index: Int) -> Node {
    incarnations += 1
    judge.nodeStarts[index] = schedule.now
    if judge.keepsTimeline { judge.log("node \(index) begins", about: nil) }
    (judge.refusedAt[index], judge.acquainted[index]) = (nil, nil)
    let node = Node(index, of: self, incarnation: incarnations)
    judge.hasOneLoop[index] = node.loops.count == 1
    if isStorm, plan.faults.contains(.standstill) {
      for loop in node.loops { loop.standstill = 0.0004 }
    }
    return node
  }

  /// Holds a step of a record at the store, or at one of its servers, to the model.
  private func follow(_ record: Record?, _ step: RecordPath, _ place: @autoclosure () -> String) {
    judge.note(record, "\(place()) has \(step.after?.description ?? "nothing")")
    var step = step
    step.mayRepeat = record?.rule.mayRepeat
    if let fault = step.fault { judge.violation(1, record, "\(place()): \(fault)", mayBeLost: false) }
    guard redis != nil, let record else { return }
    judge.checkUnused(step, of: record)
    judge.checkGrant(step, of: record)
    breakConnections(behind: record, step)
    loseReply(to: record, step)
  }

  /// Lets events happen until a condition holds or a time is over, unless a rule is broken.
  func pass(_ span: Span, until isOver: () -> Bool = { false }) {
    let end = schedule.now + span
    while judge.violations.isEmpty, !isOver(), schedule.step(until: end) {}
  }

  private func dismantle() {
    for node in nodes where !node.machine.isDead { node.kill(.vanishes) }
    origin.dismantle()
    clients.dismantle()
    network.dismantle()
    store.dismantle()
    redis?.dismantle()
    schedule.clear()
    simulation_end()
  }
}

// The storm.
extension World {
  private func weather() {
    intents = plan.intents.map { Intent($0, seed: seed) }
    batches = plan.batches.map { Batch($0, seed: seed) }
    var left = intents.count + batches.count
    for intent in intents {
      know(Identified.calls(of: intent.request(0)), of: [intent.record], intent.rule)
      operators.know(intent.record, intent.request(0))
      schedule.after(intent.dice.span(0.01, plan.seconds)) { [self] in
        clients.pursue(intent) { left -= 1 }
      }
    }
    for batch in batches {
      let items = batch.keys.map { batch.item($0, isOther: false) }
      let delivery = batch.delivery(of: items, currency: "eur", waits: true)
      know(Identified.calls(of: delivery.text), of: delivery.records, .batch)
      schedule.after(batch.dice.span(0.01, plan.seconds)) { [self] in
        clients.pursue(batch) { left -= 1 }
      }
    }
    for fault in plan.faults { begin(fault) }
    pass(Span(seconds: plan.seconds + 120)) { left == 0 }
    if left > 0, judge.violations.isEmpty {
      judge.violation(3, nil, "\(left) clients wait for ever")
    }
  }

  private func know(_ calls: [KeyedCall], of records: [String], _ rule: Rule) {
    for (call, name) in zip(calls, records) { judge.begin(name, rule, id: call.id.text) }
  }

  private func begin(_ fault: Plan.Fault) {
    if fault == .freeze || fault == .standstill { judge.hasStandstills = true }
    origin.habits.merge(habits(by: fault)) { $0 + $1 }
    switch fault {
    case .sickBackend:
      origin.isSick = true
      origin.shares = origin.emphasised(plan.isHTTP2 ? Origin.sick2 : Origin.sick)
    case .refusingBackend:
      if plan.isHTTP2, !plan.faults.contains(.sickBackend) { origin.shares = Origin.refusing }
    case .slowBackend: origin.shares = Origin.slow + origin.shares
    case .runsTwice: origin.runsTwice = true
    case .storeLosses where redis == nil:
      judge.losesReplies = true
      store.losses = 0.02
    case .storeSlow where redis == nil:
      judge.losesReplies = true
      store.slowness = 0.1
    case .standstill: judge.standsStill = true
    case .shortMemory: break
    default: repeatFault(fault, Dice(seed, fault.rawValue))
    }
  }

  /// The backend's frequent behaviour, so that a fault meets what it matters to.
  private func habits(by fault: Plan.Fault) -> [Rule: [(Origin.Kind, Double)]] {
    switch fault {
    case .storeHiccup where redis != nil: Origin.wavering
    case .storeAway where redis == nil: Origin.silent
    default: [:]
    }
  }

  /// Lets a fault happen again and again. Each has dice of its own, so that it is the same without the others.
  private func repeatFault(_ fault: Plan.Fault, _ dice: Dice) {
    var dice = dice
    schedule.after(dice.span(0.1, 2.5)) { [self] in
      guard isStorm else { return }
      faultCount += 1
      schedule.note(fault.rawValue.utf8.count)
      let node = nodes[dice.below(nodes.count)]
      happen(fault, at: node, &dice)
      // The others may go on with what one does not end.
      let isOneNodes = fault == .freeze || fault == .storeCutOff
      for span in Self.alarms(by: fault) {
        clients.tapAgain(within: span, besides: isOneNodes ? node.index : nil, &dice)
      }
      repeatFault(fault, dice)
    }
  }

  private func happen(_ fault: Plan.Fault, at node: Node, _ dice: inout Dice) {
    switch fault {
    case .clientNetwork:
      breakWires(&dice) { Rules.isClients($0.port) }
    case .backendNetwork:
      judge.hasCuts = true
      breakWires(&dice) { $0.port == Rules.originPort }
    case .backendAway: leave(&dice)
    case .kill: kill(node, &dice)
    case .freeze: freeze(node, &dice)
    case .storeAway, .storeStalls, .storeLosses, .storeSlow, .storeScripts, .storeClock, .storeFull,
      .replication, .failover, .slots, .storeHiccup:
      fail(fault, &dice)
    case .storeCutOff: cutOff(node, &dice)
    case .forget: operators.act(.forget, at: node, &dice)
    case .resolve: operators.act(.resolve, at: node, &dice)
    case .put: operators.act(.put, at: node, &dice)
    case .reload: if !node.machine.isDead { node.reload() }
    case .drain: drain(node, &dice)
    case .clocks: node.machine.wallError = dice.span(-300, 300)
    case .sickBackend, .refusingBackend, .slowBackend, .runsTwice, .standstill, .shortMemory: break
    }
  }

  /// Stops a node in the middle of what it does; often between the grant of a claim and its request's first byte, when it
  /// has made a connection to the backend.
  private func freeze(_ node: Node, _ dice: inout Dice) {
    // Mostly one at a time, so that others can take over from it.
    if dice.chance(0.7), nodes.contains(where: { schedule.now < $0.machine.frozenUntil + Span(seconds: 1) }) {
      return
    }
    if dice.chance(0.3) { return freezeSender(&dice) }
    let span = dice.chance(0.4) ? dice.span(1.7, 4) : dice.span(0.1, 4)
    let stop = { [judge, schedule] in
      judge.disturbances.append(schedule.now)
      node.machine.freeze(for: span)
    }
    guard dice.chance(0.5) else { return stop() }
    node.onBackend = { [unowned self] in if isStorm { stop() } }
  }

  /// Stops the node of the next request that may run again, once the backend has run it, for so long that another one takes
  /// its record over. The other node's attempt is under way when the first goes on, and is refused then.
  private func freezeSender(_ dice: inout Dice) {
    let span = dice.span(2.2, 3.2)
    var late = Dice(dice.next())
    origin.onRepeatable = { [unowned self] run in
      let sending = judge.records[run.record]?.sent.last { $0.attempt == run.attempt }
      guard isStorm, let sender = sending?.node, !nodes[sender].machine.isDead else { return }
      judge.disturbances.append(schedule.now)
      nodes[sender].machine.freeze(for: span)
      origin.returns[run.id] = schedule.now + span
      for range in [1.6...2.1, 1.9...2.3] { clients.tapAgain(within: range, besides: sender, &late) }
    }
  }

  func breakWires(_ dice: inout Dice, _ isChosen: (Wire) -> Bool) {
    network.each { wire, near, far in
      guard isChosen(wire), dice.chance(0.3) else { return }
      switch dice.below(3) {
      case 0: wire.stall(for: dice.span(0.01, 1.5))
      case 1: wire.lose()
      default:
        near.breakOff()
        far.breakOff()
      }
    }
  }

  /// The times after a fault at which clients have reason to be impatient, in seconds.
  private static func alarms(by fault: Plan.Fault) -> [ClosedRange<Double>] {
    switch fault {
    case .kill: [0...1.2]
    case .storeClock: [0...0.4]
    // Then the leases of its node have lapsed.
    case .storeCutOff: [1.3...3, 1.6...3]
    case .freeze: [0...1.6, 1.6...4]
    case .storeAway, .storeStalls, .storeHiccup, .failover, .clientNetwork: [0...1.6]
    default: []
    }
  }

  /// The backend cannot be reached for a time, or only slowly.
  private func leave(_ dice: inout Dice) {
    let forgets = plan.faults.contains(.forget)
    switch dice.below(forgets ? 10 : 6) {
    case 0, 1: origin.greeting = { _ in .ignores }
    case 2, 3: origin.greeting = { _ in .refuses }
    default:
      var late = Dice(dice.next())
      origin.turnOut()
      origin.greeting = { [unowned self] in
        if forgets, late.chance(0.3) { forgetWaiters(at: nodes[late.below(nodes.count)], late.span(0, 0.3)) }
        return .acceptsLater(late.span(0.5, 0.97), $0)
      }
    }
    schedule.after(dice.span(0.05, 1)) { [origin] in origin.greeting = { .accepts($0) } }
  }

  /// Has an operator remove what waits for a connection to the backend.
  private func forgetWaiters(at node: Node, _ pause: Span) {
    schedule.after(pause) { [self] in
      if isStorm, !node.machine.isDead { operators.forgetUnsent(at: node) }
    }
  }

  /// One node does not reach the store, for longer than a lease; no other one before its runs are over.
  private func cutOff(_ node: Node, _ dice: inout Dice) {
    guard !node.machine.isDead, judge.cutOffs.last.map({ $0 + Span(seconds: 3) < schedule.now }) ?? true
    else { return }
    let span = dice.chance(0.2) ? dice.span(0.8, 1.6) : dice.span(1.6, 2.8)
    judge.cutOffs.append(schedule.now)
    schedule.after(span) { [judge, schedule] in judge.cutOffs.append(schedule.now) }
    judge.outages.append((schedule.now, schedule.now + span, node.index))
    node.cutOffStore(store, for: span)
  }

  private func kill(_ node: Node, _ dice: inout Dice) {
    guard !node.machine.isDead else { return }
    judge.killed(node.index)
    end(node, dice.chance(0.2) ? .vanishes : .isKilled, restartAfter: dice.span(0.05, 2))
  }

  private func end(_ node: Node, _ end: SimSockets.ProcessEnd, restartAfter pause: Span) {
    node.kill(end)
    network.stopListening(at: Rules.port(of: node.index))
    schedule.after(pause) { [self] in
      nodes[node.index] = self.node(node.index)
      nodes[node.index].start()
    }
  }

  /// Stops a node in order, and starts it again.
  private func drain(_ node: Node, _ dice: inout Dice) {
    guard !node.machine.isDead, !node.isDraining else { return }
    network.stopListening(at: Rules.port(of: node.index))
    let (begun, pause) = (schedule.now, dice.span(0.05, 1))
    let grace = dice.chance(0.2) ? 0 : dice.between(0.2, 3)
    judge.drains.append(begun)
    node.drain(grace: Int64(grace * 1000)) { [self] isCut in
      if isCut { judge.nodeEnded() }
      // Its store, and the duplicates that it refuses, get their time.
      let limit = begun + Span(seconds: grace + 3 + 0.25 + 0.75)
      if schedule.now > limit, node.machine.frozenUntil < begun {
        judge.violation(3, nil, "node \(node.index) did not end within its grace")
      }
      end(node, .exits, restartAfter: pause)
    }
  }
}
