import NIOCore

#if canImport(Dispatch)
  import Dispatch
#endif

/// An event loop in the world's time. In each of its turns it reads its channels in an order of the seed, then runs the
/// timers that are due and the jobs that are ready, in theirs. A machine may come to a stand between any two of them.
///
/// A job never runs within the call that adds it. Only the world's thread uses it, hence `@unchecked Sendable`.
final class SimLoop: EventLoop, @unchecked Sendable {
  /// The loop whose turn it is.
  nonisolated(unsafe) private(set) static var current: SimLoop?

  private final class Timer: Comparable {
    let due: Int64
    let number: Int
    var act: (() -> Void)?

    init(due: Int64, number: Int, act: @escaping () -> Void) {
      self.due = due
      self.number = number
      self.act = act
    }

    static func < (left: Timer, right: Timer) -> Bool {
      left.due != right.due ? left.due < right.due : left.number < right.number
    }

    static func == (left: Timer, right: Timer) -> Bool { left === right }
  }

  private enum Job {
    case task(() -> Void)
    /// One that may still be cancelled.
    case timer(Timer)

    func run() {
      switch self {
      case .task(let act): act()
      case .timer(let timer): timer.act?()
      }
    }
  }

  /// The jobs of one turn, as in NIO's loop, which then looks at its sockets.
  private static let maxJobs = 4096

  let machine: Machine
  /// The probability that the machine comes to a stand before a job.
  var standstill = 0.0
  private let schedule: Schedule
  private var jobs: [Job] = []
  private var position = 0
  private var timers = Heap<Timer>()
  private var timerCount = 0
  private var channels: [SimChannel] = []
  /// The time of the next turn; `nil` if none is due.
  private var turnAt: Moment?

  init(on machine: Machine) {
    self.machine = machine
    schedule = machine.schedule
  }

  var inEventLoop: Bool { Self.current === self }

  func execute(_ task: @escaping @Sendable () -> Void) {
    guard !machine.isDead else { return Graves.bury(task) }
    jobs.append(.task(task))
    if !inEventLoop { wake() }
  }

  func scheduleTask<Result>(
    deadline: NIODeadline, _ task: @escaping @Sendable () throws -> Result
  ) -> Scheduled<Result> {
    let promise: EventLoopPromise<Result> = makePromise()
    timerCount += 1
    let timer = Timer(due: Int64(deadline.uptimeNanoseconds), number: timerCount) {
      do { promise.assumeIsolated().succeed(try task()) } catch { promise.fail(error) }
    }
    guard !machine.isDead else {
      Graves.bury(promise)
      return Scheduled(promise: promise) {}
    }
    timers.insert(timer)
    if !inEventLoop { wakeForTimer() }
    nonisolated(unsafe) let cancelled = timer
    return Scheduled(promise: promise) { cancelled.act = nil }
  }

  func scheduleTask<Result>(
    in span: TimeAmount, _ task: @escaping @Sendable () throws -> Result
  ) -> Scheduled<Result> {
    scheduleTask(deadline: .now() + span, task)
  }

  func shutdownGracefully(
    queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void
  ) {
    callback(nil)
  }

  /// Lets a channel look at what has arrived, in the next turn.
  func look(at channel: SimChannel) {
    guard !machine.isDead else { return }
    channels.append(channel)
    if !inEventLoop { wake() }
  }

  /// Drops all that is left to do.
  func end() {
    Graves.bury((jobs, timers, channels))
    jobs.removeAll()
    position = 0
    timers.removeAll()
    channels.removeAll()
  }
}

// The turns.
extension SimLoop {
  /// Seldom a loop is busy with something else.
  private func wake() {
    let busy =
      schedule.dice.chance(0.01) ? schedule.dice.span(0, 0.01) : schedule.dice.span(0, 0.00003)
    turn(at: schedule.now + busy)
  }

  private func wakeForTimer() {
    while let first = timers.first, first.act == nil { _ = timers.removeFirst() }
    if let first = timers.first { turn(at: machine.moment(ofMonotonic: first.due)) }
  }

  private func turn(at moment: Moment) {
    if let turnAt, turnAt <= moment { return }
    turnAt = moment
    schedule.at(moment) { [self] in
      guard turnAt == moment else { return }
      turnAt = nil
      turn()
    }
  }

  private func turn() {
    guard !machine.isDead else { return }
    if machine.isFrozen { return turn(at: machine.frozenUntil) }
    machine.showClocks()
    Self.current = self
    readChannels()
    runJobs()
    Self.current = nil
    if machine.isDead { return end() }
    if position < jobs.count || !channels.isEmpty { wake() }
    wakeForTimer()
  }

  private func readChannels() {
    guard !channels.isEmpty else { return }
    var ready = channels
    channels.removeAll(keepingCapacity: true)
    if ready.count > 1 { ready.shuffle(using: &schedule.dice) }
    for channel in ready where !machine.isDead { channel.lookAtSocket() }
  }

  private func runJobs() {
    var left = Self.maxJobs
    while left > 0, !machine.isDead {
      takeDueTimers()
      guard position < jobs.count else { break }
      while position < jobs.count, left > 0, !machine.isDead {
        if standstill > 0, schedule.dice.chance(standstill) {
          machine.freeze(for: schedule.dice.span(0.05, 2.5))
          return
        }
        let job = jobs[position]
        position += 1
        left -= 1
        job.run()
      }
      if position == jobs.count {
        jobs.removeAll(keepingCapacity: true)
        position = 0
      }
    }
  }

  private func takeDueTimers() {
    let now = machine.monotonic(at: schedule.now)
    while let first = timers.first, first.due <= now {
      _ = timers.removeFirst()
      if first.act != nil { jobs.append(.timer(first)) }
    }
  }
}

extension SimLoop {
  func next() -> any EventLoop { self }
  func any() -> any EventLoop { self }
  func makeIterator() -> EventLoopIterator { EventLoopIterator([self]) }
}
