import Dispatch
import GRDB
import Idempotency
import Logging
import Platform
import Synchronization
import Wire

/// The queue between the tasks of all event loops and the writer, which takes all small commands and a bounded part of
/// those that move large responses.
final class RequestQueue: Sendable {
  private static let largeBudget = 1 << 20

  private struct State {
    var waiting: [any EmbeddedRequest] = []
    var taken: [any EmbeddedRequest] = []
    /// The turns of the commands that move large responses, and those that wait for them.
    var turns = TurnQueue(budget: RequestQueue.largeBudget)
    var later: [TurnQueue.Place: any EmbeddedRequest] = [:]
    /// The places of those in `waiting`, and of those in `taken`.
    var admitted: [TurnQueue.Place] = []
    var begun: [TurnQueue.Place] = []
    var isClosed = false

    /// Moves the commands whose turn it is to those that are taken next.
    mutating func admit() {
      while let place = turns.takeNext() {
        admitted.append(place)
        guard let request = later.removeValue(forKey: place) else {
          invariantBroken("the turn comes of a command that does not wait")
        }
        waiting.append(request)
      }
    }
  }

  private let state = Mutex(State())
  private let wakeUp = DispatchSemaphore(value: 0)

  func add(_ request: any EmbeddedRequest) -> Bool {
    let (isAccepted, isFirst) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      let wasEmpty = state.waiting.isEmpty
      if let bytes = request.largeBytes {
        state.later[state.turns.enter(caller: request.turn, bytes: bytes)] = request
        state.admit()
      } else {
        state.waiting.append(request)
      }
      return (true, wasEmpty && !state.waiting.isEmpty)
    }
    if isFirst { wakeUp.signal() }
    return isAccepted
  }

  func close() {
    let isFirst = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    if isFirst { wakeUp.signal() }
  }

  /// Waits for commands, until `deadline` at most, and takes them; `nil` once the queue is closed and empty. `finish`
  /// must follow.
  ///
  /// - Parameter group: An empty array, whose memory is reused for later commands.
  func take(reusing group: consuming [any EmbeddedRequest], until deadline: DispatchTime)
    -> [any EmbeddedRequest]?
  {
    _ = wakeUp.wait(timeout: deadline)
    var taken = group
    let isOver = state.withLock { state in
      invariant(state.taken.isEmpty && state.begun.isEmpty, "commands are taken before others are done")
      swap(&state.waiting, &taken)
      state.taken = taken
      swap(&state.begun, &state.admitted)
      return state.isClosed && taken.isEmpty
    }
    return isOver ? nil : taken
  }

  func finish() {
    let isFirst = state.withLock { state in
      state.taken = []
      guard !state.begun.isEmpty else { return false }
      let wasEmpty = state.waiting.isEmpty
      for place in state.begun { state.turns.end(place) }
      state.begun.removeAll(keepingCapacity: true)
      state.admit()
      return wasEmpty && !state.waiting.isEmpty
    }
    if isFirst { wakeUp.signal() }
  }

  /// Counts a tick of the watchdog, and expires the commands that have waited for `limit` ticks. Ticks are counted
  /// instead of time, so that after a stop of the process the writer gets a chance first.
  func tick(limit: Int, isServing: Bool) {
    let expired = state.withLock { state -> [any EmbeddedRequest] in
      guard !(state.waiting.isEmpty && state.taken.isEmpty && state.later.isEmpty) else { return [] }
      var expired = state.taken.filter { $0.countTick() >= limit }
      var waiting: [any EmbeddedRequest] = []
      for request in state.waiting {
        if request.countTick() >= limit { expired.append(request) } else { waiting.append(request) }
      }
      // Expired commands are dropped, because the writer may be blocked for long.
      if waiting.count < state.waiting.count { state.waiting = waiting }
      for (place, request) in state.later where request.countTick() >= limit {
        state.turns.leave(place)
        state.later[place] = nil
        expired.append(request)
      }
      return expired
    }
    for request in expired { request.expire(isServing: isServing) }
  }
}

/// The group commit: all commands that wait run in one transaction, with one wait for the disk. A watchdog ends
/// commands that exceed the time-out, since the writer may be blocked by the disk or by a lock.
final class EmbeddedWriter: Sendable {
  /// The watchdog's ticks within the time-out of a command.
  private static let ticks = 8

  let queue = RequestQueue()
  let waiters = WatchRegistry()
  let figures = Mutex(EmbeddedFigures())
  let monitor: StoreMonitor
  let logger: Logger
  let timeout: Milliseconds
  let logBound: Int
  private let servedAt: ServingTime
  private let clock: StoreClock
  private let watchdog: Watchdog

  init(
    clock: StoreClock, timeout: Milliseconds, logBound: Int, monitor: StoreMonitor, logger: Logger
  ) {
    self.logBound = logBound
    self.monitor = monitor
    self.clock = clock
    self.timeout = timeout
    self.logger = logger
    let (queue, servedAt) = (queue, ServingTime(within: timeout - timeout / 4))
    self.servedAt = servedAt
    watchdog = Watchdog(every: timeout / Int64(Self.ticks)) {
      queue.tick(limit: Self.ticks, isServing: servedAt.isRecent)
    }
  }

  var isServing: Bool { servedAt.isRecent }

  func served() { servedAt.note() }

  func run(on database: Database, _ presence: FilePresence, under lock: FileLock) {
    do {
      let work = try EmbeddedWork(database, presence, lock, clock, of: self)
      work.run()
    } catch {
      logger.critical("store: the writer cannot work", metadata: ["error": "\(error)"])
      queue.close()
      while let group = queue.take(reusing: [], until: .now()) {
        for request in group { request.fail(.unavailable("\(error)")) }
        queue.finish()
      }
    }
    watchdog.cancel()
  }
}

/// The time when the writer last ran commands: while it runs some, a command only takes turns. Safe from any thread.
private final class ServingTime: Sendable {
  private let span: Milliseconds
  private let nanoseconds = Atomic<Int64>(BootInstant.now.nanoseconds)

  init(within span: Milliseconds) { self.span = span }

  func note() { nanoseconds.store(BootInstant.now.nanoseconds, ordering: .relaxed) }

  var isRecent: Bool {
    BootInstant.now - BootInstant(nanoseconds: nanoseconds.load(ordering: .relaxed)) < span
  }
}

/// A repeating timer on a thread that the writer cannot block. Any thread may use a dispatch source.
private final class Watchdog: @unchecked Sendable {
  private let timer: any DispatchSourceTimer

  init(every span: Milliseconds, _ tick: @escaping @Sendable () -> Void) {
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "semel.store.watchdog"))
    let pause = DispatchTimeInterval.milliseconds(max(1, Int(span.count)))
    timer.schedule(deadline: .now() + pause, repeating: pause)
    timer.setEventHandler(handler: tick)
    timer.resume()
  }

  deinit { timer.cancel() }

  func cancel() { timer.cancel() }
}

/// The reason for which the embedded store cannot be opened or copied.
public enum EmbeddedStoreError: Error, Equatable, CustomStringConvertible {
  case noDirectory(path: String)
  /// Another process has the file open, or this process already has.
  case inUse(path: String, owner: String)
  case notADatabase(path: String)
  /// The file is another program's database.
  case foreignDatabase(path: String)
  case newerFormat(path: String, found: Int, known: Int)
  /// Records were lost, and must not be lost silently.
  case loss(path: String, FileLoss)
  case cannotOpen(path: String, reason: String)
  case cannotCopy(target: String, reason: String)

  public var description: String {
    switch self {
    case .noDirectory(let path):
      "store \(path): its directory does not exist; create it, or mend store.path"
    case .inUse(let path, let owner):
      "store \(path): in use by \(owner); one file serves one process, use store.kind: redis for several"
    case .notADatabase(let path):
      "store \(path): the file is not a database; mend store.path, or move the file away"
    case .foreignDatabase(let path):
      "store \(path): the database belongs to another program; mend store.path"
    case .newerFormat(let path, let found, let known):
      "store \(path): written by a newer version (format \(found), this one reads up to \(known)); upgrade"
    case .loss(let path, let loss):
      "store \(path): \(loss.refusal(at: path))"
    case .cannotOpen(let path, let reason):
      "store \(path): cannot be opened: \(reason); start Semel again once the store can be used"
    case .cannotCopy(let target, let reason):
      "\(target): cannot be written: \(reason)"
    }
  }
}

extension EmbeddedStoreError {
  init(_ error: any Error, opening path: String) {
    switch error {
    case let error as EmbeddedStoreError:
      self = error
    case let error as DatabaseError:
      self =
        error.resultCode == .SQLITE_NOTADB
        ? .notADatabase(path: path) : .cannotOpen(path: path, reason: error.message ?? "\(error)")
    default:
      self = .cannotOpen(path: path, reason: "\(error)")
    }
  }
}
