import Glibc
import Platform
import Synchronization

/// Takes whole log entries from any thread and writes them to a file descriptor from a thread of its own.
///
/// A slow reader of the log never delays a request. The first entry of a batch wakes the writing thread, which pauses
/// for others until `batchLength` bytes wait, an urgent entry comes, or somebody waits. Entries that exceed `capacity`,
/// or that the descriptor refuses, are dropped and counted; the next batch ends in an entry with their number.
///
/// A POSIX mutex guards its state, since the writing thread sleeps on a condition; hence `@unchecked Sendable`.
public final class LogSink: @unchecked Sendable {
  private struct Pending {
    var bytes: [UInt8] = []
    var isDue = false
    var batches = 0
    var dropped = 0
    var droppedInAll = 0
    var sleeps = 0
  }

  /// The number of bytes that are written without a further pause: half of what an empty pipe takes (`pipe(7)`).
  static let batchLength = 32 << 10
  /// The longest sleep before another attempt to write.
  private static let maxPollMilliseconds: Int32 = 1000

  private let descriptor: Int32
  private let capacity: Int
  private let pause: Int
  private let format: LogFormat
  private var pending = Pending()
  /// The bytes that were taken, and those that were written or refused. A thread that crashes reads them without
  /// `lock`.
  private let taken = Atomic<Int>(0)
  private let written = Atomic<Int>(0)
  /// Whether the last line written lacks its line feed.
  private var isMidLine = false
  /// The number in the sink's own entry at the end of the present batch; 0 without.
  private var reported = 0
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let filled: UnsafeMutablePointer<pthread_cond_t>
  private let progressed: UnsafeMutablePointer<pthread_cond_t>

  /// Creates a sink and starts its writing thread.
  ///
  /// - Parameters:
  ///   - capacity: The maximum number of bytes that wait to be written, some 30,000 entries by default.
  ///   - pause: The longest pause before a batch is written, in milliseconds.
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
    // No change of the wall clock may stretch the waits.
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

  var sleeps: Int {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return pending.sleeps
  }

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

  /// Waits until the entries so far are written, or for so many milliseconds, without a lock: the caller may hold it.
  func awaitWritten(milliseconds: Int32) {
    let wanted = taken.load(ordering: .acquiring)
    for _ in 0..<milliseconds where written.load(ordering: .acquiring) < wanted { poll(nil, 0, 1) }
  }

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

  private func awaitRoom() {
    pthread_mutex_lock(lock)
    pending.sleeps += 1
    pthread_mutex_unlock(lock)
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    _ = poll(&entry, 1, Self.maxPollMilliseconds)
  }

  /// Drops and counts entries that the descriptor refuses.
  private func drop(_ lines: Slice<UnsafeRawBufferPointer>) {
    // The sink's own last line is written again.
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

private let fatalSignals = [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE]

/// The sink that a crash waits for, and what else would handle the signals. Set once, before the handlers read them.
private nonisolated(unsafe) var awaitedSink: LogSink?
private nonisolated(unsafe) var otherActions: UnsafeMutablePointer<sigaction>?

extension LogSink {
  /// Has a crash of the process write the entries that were taken before it. A process calls it for one sink.
  ///
  /// The thread that crashes waits in its signal's handler until the writing thread has written. Then the signal takes
  /// its course.
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
  // The descriptor may take nothing.
  awaitedSink?.awaitWritten(milliseconds: 250)
  if let otherActions { sigaction(number, &otherActions[Int(number)], nil) }
  // Delivered once this handler returns.
  raise(number)
}
