import Glibc
import Platform
import Synchronization

/// Takes whole log entries from any thread and writes them to a file descriptor from a thread of its own.
///
/// An entry costs its copy and a short lock; a slow reader of the log never delays a request. The first entry of a
/// batch wakes the writing thread, which then pauses for others: it writes after the pause, or as soon as `batchLength`
/// bytes wait, an urgent entry comes, or somebody waits for what was taken so far. So a busy process pays for a switch
/// and a `write` some dozens of times a second, and not with each request.
///
/// Entries that exceed `capacity`, and entries that the descriptor refuses, are dropped and counted; the next batch
/// ends in an entry with their number. A mutex guards its state, a POSIX one, since the writing thread sleeps on a
/// condition variable; hence `@unchecked Sendable`.
public final class LogSink: @unchecked Sendable {
  private struct Pending {
    var bytes: [UInt8] = []
    /// Whether they are written without a further pause.
    var isDue = false
    /// The number of batches that the writing thread took.
    var batches = 0
    var dropped = 0
    var droppedInAll = 0
    /// The number of sleeps because the descriptor had no room.
    var sleeps = 0
  }

  /// The number of bytes that are written without a further pause. It is half of what an empty pipe takes (`pipe(7)`),
  /// so that a batch fits beside the one before.
  static let batchLength = 32 << 10
  /// The longest sleep between two attempts to write to a descriptor that takes nothing, in milliseconds.
  private static let maxPollMilliseconds: Int32 = 1000

  private let descriptor: Int32
  private let capacity: Int
  /// The longest pause before a batch is written, in milliseconds.
  private let pause: Int
  /// The format of its own entries.
  private let format: LogFormat
  /// The entries that wait. Guarded by `lock`.
  private var pending = Pending()
  /// The number of bytes that were taken, and the number of those that were written or refused. Changed under `lock`; a
  /// thread that crashes reads them without it.
  private let taken = Atomic<Int>(0)
  private let written = Atomic<Int>(0)
  /// Whether the last line written lacks its line feed. Used by the writing thread alone.
  private var isMidLine = false
  /// The number that the sink's own entry at the end of the present batch states; 0 if it has none. Used by the writing
  /// thread alone.
  private var reported = 0
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let filled: UnsafeMutablePointer<pthread_cond_t>
  private let progressed: UnsafeMutablePointer<pthread_cond_t>

  /// Creates a sink and starts its writing thread.
  ///
  /// - Parameters:
  ///   - descriptor: The file descriptor that entries are written to; standard output by default.
  ///   - capacity: The maximum number of bytes that wait to be written; 8 MiB, which is some 30,000 entries, by
  ///     default.
  ///   - pause: The longest pause before a batch is written, in milliseconds; 20, which nobody who reads a log notices,
  ///     by default.
  ///   - format: The format of the sink's own entries.
  public init(
    descriptor: Int32 = STDOUT_FILENO, capacity: Int = 8 << 20, pause: Int = 20, format: LogFormat = .json
  ) {
    self.format = format
    self.descriptor = descriptor
    self.capacity = capacity
    self.pause = pause
    lock = .allocate(capacity: 1)
    filled = .allocate(capacity: 1)
    progressed = .allocate(capacity: 1)
    pthread_mutex_init(lock, nil)
    // Both waits have a limit, which no change of the wall clock may stretch.
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(filled, &attributes)
    pthread_cond_init(progressed, &attributes)
    pthread_condattr_destroy(&attributes)
    startNeededThread { [self] in run() }
  }

  /// Takes one entry, which ends in a line feed.
  ///
  /// - Parameter isUrgent: Whether it is written at once, with those that wait.
  public func write(_ line: [UInt8], isUrgent: Bool = false) {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    guard pending.bytes.count + line.count <= capacity else {
      pending.dropped += 1
      pending.droppedInAll += 1
      return
    }
    let isFirst = pending.bytes.isEmpty
    pending.bytes.append(contentsOf: line)
    taken.wrappingAdd(line.count, ordering: .releasing)
    let becomesDue = !pending.isDue && (isUrgent || pending.bytes.count >= Self.batchLength)
    if becomesDue { pending.isDue = true }
    if isFirst || becomesDue { pthread_cond_signal(filled) }
  }

  /// The number of entries for which there was no room, or which the descriptor refused.
  public var dropped: Int {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return pending.droppedInAll
  }

  /// The number of times that the writing thread slept until a non-blocking descriptor had room.
  var sleeps: Int {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return pending.sleeps
  }

  /// The number of batches that the writing thread took.
  var batches: Int {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return pending.batches
  }

  /// Waits until all entries that were taken so far are written.
  ///
  /// - Returns: False if the descriptor did not take them within `seconds`.
  @discardableResult
  public func flush(within seconds: Int = 5) -> Bool {
    var end = Self.time(milliseconds: seconds * 1000)
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    let wanted = taken.load(ordering: .relaxed)
    if !pending.bytes.isEmpty {
      pending.isDue = true
      pthread_cond_signal(filled)
    }
    while written.load(ordering: .relaxed) < wanted {
      guard pthread_cond_timedwait(progressed, lock, &end) == 0 else { return false }
    }
    return true
  }

  /// Waits until the entries that were taken so far are written, or for the given number of milliseconds, without a
  /// lock: the thread that calls it may hold that.
  func awaitWritten(milliseconds: Int32) {
    let wanted = taken.load(ordering: .acquiring)
    for _ in 0..<milliseconds where written.load(ordering: .acquiring) < wanted { poll(nil, 0, 1) }
  }

  /// The time by the monotonic clock in a number of milliseconds.
  private static func time(milliseconds: Int) -> timespec {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let nanoseconds = time.tv_nsec + milliseconds % 1000 * 1_000_000
    time.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
    time.tv_nsec = nanoseconds % 1_000_000_000
    return time
  }

  private func run() {
    var batch: [UInt8] = []
    while true {
      pthread_mutex_lock(lock)
      while pending.bytes.isEmpty { pthread_cond_wait(filled, lock) }
      pauseForMore()
      batch.removeAll(keepingCapacity: true)
      swap(&batch, &pending.bytes)
      if isMidLine { batch.insert(UInt8(ascii: "\n"), at: 0) }
      reported = pending.dropped
      if reported > 0 { batch.append(contentsOf: droppedEntry(reported)) }
      pending.dropped = 0
      pending.isDue = false
      pending.batches += 1
      let end = taken.load(ordering: .relaxed)
      pthread_mutex_unlock(lock)
      writeAll(batch)
      pthread_mutex_lock(lock)
      written.store(end, ordering: .releasing)
      pthread_cond_broadcast(progressed)
      pthread_mutex_unlock(lock)
    }
  }

  /// Waits, with `lock` held, until the entries that wait are due, or the pause is over.
  private func pauseForMore() {
    var end = Self.time(milliseconds: pause)
    while !pending.isDue, pthread_cond_timedwait(filled, lock, &end) == 0 {}
  }

  private func droppedEntry(_ count: Int) -> [UInt8] {
    var line = LogLine(format: format)
    line.addTime()
    line.add("level", "error")
    line.add("message", "log lines dropped")
    line.add("count", count)
    return line.end()
  }

  private func writeAll(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let count = systemWrite(descriptor, UnsafeRawBufferPointer(rebasing: rest))
        if count > 0 {
          isMidLine = rest[rest.startIndex + count - 1] != UInt8(ascii: "\n")
          rest = rest.dropFirst(count)
        } else if errno == EAGAIN {
          awaitRoom()
        } else if errno != EINTR {
          return drop(rest)
        }
      }
    }
  }

  /// Sleeps until a non-blocking descriptor has room again.
  private func awaitRoom() {
    pthread_mutex_lock(lock)
    pending.sleeps += 1
    pthread_mutex_unlock(lock)
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    _ = poll(&entry, 1, Self.maxPollMilliseconds)
  }

  /// Drops and counts entries that the descriptor refuses: the disk is full, or the pipe has no reader any more.
  private func drop(_ lines: Slice<UnsafeRawBufferPointer>) {
    // The sink's own entry is the last line. It is written again, with the new number.
    let count = lines.count { $0 == UInt8(ascii: "\n") } - (reported > 0 ? 1 : 0)
    pthread_mutex_lock(lock)
    pending.dropped += count + reported
    pending.droppedInAll += count
    pthread_mutex_unlock(lock)
  }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}

/// The signals of errors in the process itself (an invariant is broken, an access to memory is invalid), and of a
/// watchdog that ends it.
private let fatalSignals = [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE]

/// The sink that a crash waits for, and what else would handle the fatal signals, by their numbers. Set once, before the
/// handlers that read them.
private nonisolated(unsafe) var awaitedSink: LogSink?
private nonisolated(unsafe) var otherActions: UnsafeMutablePointer<sigaction>?

extension LogSink {
  /// Has a crash of the process write the entries that were taken before it. A process calls it for one sink.
  ///
  /// The thread that crashes waits in the handler of its signal, where it may do little else, until the writing thread
  /// has ended its pause and written. Then the signal takes its course: it ends the process, or prints its stack first
  /// where Swift's runtime does so.
  public func surviveCrashes() {
    let actions = UnsafeMutablePointer<sigaction>.allocate(capacity: Int(NSIG))
    actions.initialize(repeating: sigaction(), count: Int(NSIG))
    (awaitedSink, otherActions) = (self, actions)
    for number in fatalSignals {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = awaitEntries
      sigaction(number, nil, &actions[Int(number)])
      sigaction(number, &action, nil)
    }
  }
}

private func awaitEntries(_ number: Int32) {
  // Some pauses of the writing thread. There is a limit, since the descriptor may take nothing.
  awaitedSink?.awaitWritten(milliseconds: 250)
  if let otherActions { sigaction(number, &otherActions[Int(number)], nil) }
  // It is delivered once this handler returns, before the thread executes anything else.
  raise(number)
}
