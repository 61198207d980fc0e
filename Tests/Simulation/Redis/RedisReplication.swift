import SimRedis

/// The way of a master's changes to one replica, in the time of its world.
final class RedisReplication {
  let link: SimReplicationLink
  private let master: RedisHost
  let replica: RedisHost
  private let schedule: Schedule
  private var dice: Dice
  private var isUnderWay = false
  /// Whether nothing passes.
  private(set) var isHeldUp = false
  /// Whether the replica follows another server, or none.
  private(set) var isOver = false

  init(_ link: SimReplicationLink, from master: RedisHost, to replica: RedisHost, _ dice: Dice) {
    self.link = link
    self.master = master
    self.replica = replica
    self.dice = dice
    schedule = master.schedule
    connect(after: self.dice.span(0, 0.02))
  }

  /// Whether the replica has everything, and the master knows it.
  var isWhole: Bool {
    link.isUp && link.pendingCount == 0 && link.confirmedPlace == master.server.place
  }

  func follows(_ server: RedisHost) -> Bool { !isOver && master === server }

  func end() {
    isOver = true
    link.remove()
  }

  func hold() { isHeldUp = true }

  /// Lets changes pass again; over a new connection, if the one before is lost.
  func letGo(isLost: Bool) {
    isHeldUp = false
    if isLost { link.cut() }
    pump()
  }

  /// Connects, and tells the master ever and again what the replica has.
  private func connect(after span: Span) {
    schedule.after(span) { [self] in
      guard !isOver else { return }
      if !isHeldUp {
        link.connect(at: schedule.now.nanoseconds)
        pump()
        confirm()
      }
      connect(after: dice.span(0.1, 1))
    }
  }

  private func trip() -> Span {
    dice.chance(0.05) ? dice.span(0.001, 0.02) : dice.span(0.00005, 0.0005)
  }

  private var canPass: Bool { !isOver && !isHeldUp && master.isAwake && replica.isAwake }

  /// Has the replica get what it lacks.
  func pump() {
    guard !isUnderWay, canPass, link.pendingCount > 0 else { return }
    isUnderWay = true
    schedule.after(trip()) { [self] in
      isUnderWay = false
      guard canPass else { return }
      link.deliver(limit: dice.chance(0.1) ? 1 : .max)
      replica.settle()
      schedule.after(trip()) { [self] in confirm() }
      pump()
    }
  }

  private func confirm() {
    guard canPass else { return }
    link.confirm(at: schedule.now.nanoseconds)
    master.settle()
  }
}
