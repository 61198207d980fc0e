import Glibc
import Platform
import Synchronization

/// Takes whole log entries from any thread and writes them to a file descriptor from a thread of its own.
///
/// An entry costs its copy and a short lock; a slow reader of the log never delays a request. Entries that exceed
/// `capacity`, and entries that the descriptor refuses, are dropped and counted; the next batch ends in an entry with
/// their number. A mutex guards its state, a POSIX one, since the writing thread sleeps on a condition variable; hence
/// `@unchecked Sendable`.
public final class LogSink: @unchecked Sendable {
  private struct Pending {
    var bytes: [UInt8] = []
    var dropped = 0
    var droppedInAll = 0
    /// The number of sleeps because the descriptor had no room.
    var sleeps = 0
  }

  /// The longest sleep between two attempts to write to a descriptor that takes nothing, in milliseconds.
  private static let maxPollMilliseconds: Int32 = 1000

  private let descriptor: Int32
  private let capacity: Int
  /// The format of its own entries.
  private let format: LogFormat
  /// The bytes that wait. Guarded by `lock`, like `isWriting`.
  private var pending = Pending()
  private var isWriting = false
  /// Whether the last line written lacks its line feed. Used by the writing thread alone.
  private var isMidLine = false
  /// The number that the sink's own entry at the end of the present batch states; 0 if it has none. Used by the writing
  /// thread alone.
  private var reported = 0
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let filled: UnsafeMutablePointer<pthread_cond_t>
  private let emptied: UnsafeMutablePointer<pthread_cond_t>

  /// Creates a sink and starts its writing thread.
  ///
  /// - Parameters:
  ///   - descriptor: The file descriptor that entries are written to; standard output by default.
  ///   - capacity: The maximum number of bytes that wait to be written; 8 MiB, which is some 30,000 entries, by
  ///     default.
  ///   - format: The format of the sink's own entries.
  public init(
    descriptor: Int32 = STDOUT_FILENO, capacity: Int = 8 << 20, format: LogFormat = .json
  ) {
    self.format = format
    self.descriptor = descriptor
    self.capacity = capacity
    lock = .allocate(capacity: 1)
    filled = .allocate(capacity: 1)
    emptied = .allocate(capacity: 1)
    pthread_mutex_init(lock, nil)
    pthread_cond_init(filled, nil)
    pthread_cond_init(emptied, nil)
    startNeededThread { [self] in run() }
  }

  /// Takes one entry, which ends in a line feed.
  public func write(_ line: some Collection<UInt8>) {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    guard pending.bytes.count + line.count <= capacity else {
      pending.dropped += 1
      pending.droppedInAll += 1
      return
    }
    let wasEmpty = pending.bytes.isEmpty
    pending.bytes.append(contentsOf: line)
    if wasEmpty { pthread_cond_signal(filled) }
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

  /// Waits until all entries are written.
  ///
  /// - Returns: False if the descriptor did not take them within `seconds`.
  @discardableResult
  public func flush(within seconds: Int = 5) -> Bool {
    var end = timespec()
    clock_gettime(CLOCK_REALTIME, &end)
    end.tv_sec += seconds
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    while !pending.bytes.isEmpty || isWriting {
      guard pthread_cond_timedwait(emptied, lock, &end) == 0 else { return false }
    }
    return true
  }

  private func run() {
    var batch: [UInt8] = []
    while true {
      pthread_mutex_lock(lock)
      isWriting = false
      if pending.bytes.isEmpty { pthread_cond_broadcast(emptied) }
      while pending.bytes.isEmpty { pthread_cond_wait(filled, lock) }
      batch.removeAll(keepingCapacity: true)
      swap(&batch, &pending.bytes)
      if isMidLine { batch.insert(UInt8(ascii: "\n"), at: 0) }
      reported = pending.dropped
      if reported > 0 { batch.append(contentsOf: droppedEntry(reported)) }
      pending.dropped = 0
      isWriting = true
      pthread_mutex_unlock(lock)
      writeAll(batch)
    }
  }

  private func droppedEntry(_ count: Int) -> [UInt8] {
    var line = LogLine(format: format)
    line.add("time", Timestamp.now())
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
