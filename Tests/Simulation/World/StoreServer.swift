import Idempotency
import NIOCore
import Platform

/// The store of a world: `RecordRules` on a dictionary, behind a network of its own.
///
/// Each loop has one connection, on which commands keep their order. The store is away at times, replies get lost, and
/// so do commands that had not arrived when a connection breaks.
final class StoreServer: @unchecked Sendable {
  typealias Rule<Reply> = (StoredEntry?, StoreInstant) -> RecordStep<Reply>

  let schedule: Schedule
  let machine: Machine
  private var dice: Dice
  private(set) var entries: [RecordID: StoredEntry] = [:]
  /// The owners that have given back their claims: a later copy of such a claim has no effect.
  private var spent: Set<OwnerToken> = []
  private var watches: [RecordID: [SimWatch]] = [:]
  /// Whether it refuses connections, so that no command leaves.
  private var isAway: Bool { schedule.now < awayUntil }
  private var awayUntil = Moment.start
  private var isStalledUntil = Moment.start
  /// The number of times that all connections broke.
  private var breaks = 0
  /// The machines that do not reach it, and how often that was so of each.
  private var cutOff: Set<ObjectIdentifier> = []
  private var cuts: [ObjectIdentifier: Int] = [:]
  /// The time for which it goes away behind the next grant of some claims; `nil` if it stays.
  private var absence: (span: Span, isChosen: (RecordID, StoredRecord) -> Bool, begins: () -> Void)?
  /// The probability that a reply is lost.
  var losses = 0.0
  var slowness = 0.0
  /// Called with each command and reply, for a person to read.
  var journal: ((RecordID, String) -> Void)?
  /// Called with each change, for the judge, and with what was there before.
  var onChange: (RecordID, RecordPath) -> Void = { _, _ in }

  /// Called when an operator's command is about to change a record.
  var onDecision: (RecordID) -> Void = { _ in }
  /// Whether the command that is run is an operator's.
  private var isDeciding = false

  init(on schedule: Schedule, seed: UInt64) {
    self.schedule = schedule
    dice = Dice(seed, "store")
    machine = Machine("store", on: schedule, &dice)
  }

  var now: StoreInstant { StoreInstant(milliseconds: machine.wall(at: schedule.now) / 1_000_000) }

  /// The time that a command or a reply takes.
  func trip() -> Span {
    dice.chance(slowness) ? dice.span(0.001, 0.2) : dice.span(0.00005, 0.0004)
  }

  func losesReply() -> Bool { losses > 0 && dice.chance(losses) }

  /// The moment at which a command that arrives now is run.
  var servedAt: Moment { max(schedule.now, isStalledUntil) }

  func run<Reply>(_ id: RecordID, _ rule: Rule<Reply>) -> Reply {
    defer { isDeciding = false }
    let before = entries[id]
    let step = rule(before, now)
    switch step.change {
    case .none: break
    case .delete: change(id, nil)
    case .put(let entry):
      change(id, entry)
      leave(behindGrant: entry, of: id, after: before)
    }
    return step.outcome
  }

  /// Breaks all connections as soon as it has granted a claim, whose reply is lost, and refuses new ones for a time.
  ///
  /// - Parameters:
  ///   - isChosen: Whether it may be the claim by which a record is now held.
  ///   - begins: Called when it does.
  func leaveBehindGrant(
    for span: Span, where isChosen: @escaping (RecordID, StoredRecord) -> Bool, _ begins: @escaping () -> Void
  ) {
    absence = (span, isChosen, begins)
  }

  /// Takes that back.
  func stay() { absence = nil }

  private func leave(behindGrant entry: StoredEntry, of id: RecordID, after before: StoredEntry?) {
    guard let absence, case .record(let record) = entry, record.isHeld, absence.isChosen(id, record) else {
      return
    }
    if case .record(let last)? = before, last.owner == record.owner { return }
    self.absence = nil
    leave(for: absence.span)
    absence.begins()
  }

  /// Takes an operator's command, which `run` follows.
  func decide(_ id: RecordID) {
    isDeciding = true
    onDecision(id)
  }

  private func change(_ id: RecordID, _ entry: StoredEntry?) {
    let before = entries[id]
    entries[id] = entry
    schedule.note(3)
    let path = RecordPath(
      before: before.map { PathEntry($0) }, after: entry.map { PathEntry($0) }, now: now,
      isDecision: isDeciding)
    onChange(id, path)
    if case .record(let record)? = entry, record.isHeld { return }
    for watch in watches[id] ?? [] { schedule.after(trip()) { watch.push() } }
  }

  func spend(_ owner: OwnerToken) { spent.insert(owner) }
  func isSpent(_ owner: OwnerToken) -> Bool { spent.contains(owner) }

  func add(_ watch: SimWatch) {
    if !watch.isCancelled { watches[watch.id, default: []].append(watch) }
  }

  func remove(_ watch: SimWatch) {
    watches[watch.id]?.removeAll { $0 === watch }
    if watches[watch.id]?.isEmpty == true { watches[watch.id] = nil }
  }

  /// The number of subscriptions of nodes that are alive.
  var watchCount: Int { watches.values.joined().count { !$0.isDead } }

  /// Breaks all connections, and refuses new ones for a time.
  func leave(for span: Span) {
    breaks += 1
    awayUntil = max(awayUntil, schedule.now + span)
    schedule.note(4)
    schedule.after(span) { [self] in
      guard !isAway else { return }
      // They have subscribed anew, and may have missed something.
      let all = watches.sorted { $0.key.text < $1.key.text }.flatMap(\.value)
      for watch in all { schedule.after(trip()) { watch.push() } }
    }
  }

  /// Breaks the connections of one machine, and refuses its new ones for a time.
  func cutOff(_ machine: Machine, for span: Span) {
    let id = ObjectIdentifier(machine)
    cuts[id, default: 0] += 1
    cutOff.insert(id)
    schedule.note(4)
    schedule.after(span) { [self] in
      cutOff.remove(id)
      for watch in watches.sorted(by: { $0.key.text < $1.key.text }).flatMap(\.value)
      where watch.machine === machine {
        schedule.after(trip()) { watch.push() }
      }
    }
  }

  /// Whether a machine does not reach it.
  func isAway(for machine: Machine) -> Bool { isAway || cutOff.contains(ObjectIdentifier(machine)) }

  /// The number of times that the connections of a machine broke.
  func breaks(of machine: Machine) -> Int { breaks + cuts[ObjectIdentifier(machine), default: 0] }

  /// Takes commands, and runs none of them for a time.
  func stall(for span: Span) { isStalledUntil = max(isStalledUntil, schedule.now + span) }

  func dismantle() {
    watches.removeAll()
    onChange = { _, _ in }
    onDecision = { _ in }
    stay()
  }
}

/// A subscription of one delivery to the ends of its record.
final class SimWatch: RecordWatch, @unchecked Sendable {
  let id: RecordID
  private(set) var isCancelled = false
  private let signal: Signal
  private let loop: SimLoop
  private let server: StoreServer

  init(_ id: RecordID, _ server: StoreServer, _ context: EventLoopContext, _ loop: SimLoop) {
    self.id = id
    self.server = server
    self.loop = loop
    signal = Signal(timers: context.timers)
  }

  var isDead: Bool { loop.machine.isDead }
  var machine: Machine { loop.machine }

  func push() { loop.execute { [signal] in signal.set() } }

  func changed(within span: Milliseconds) async { _ = await signal.wait(milliseconds: span.count) }

  func wake() { signal.set() }

  func cancel() {
    isCancelled = true
    server.remove(self)
  }
}
