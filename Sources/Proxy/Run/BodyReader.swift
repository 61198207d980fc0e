import NIOCore
import NIOPosix
import Synchronization

/// The threads on which large bodies are read, shared by all event loops.
///
/// Smaller bodies go first, so that they do not wait for many large ones. The bytes that may overtake a body are
/// limited, so that each body gets its turn.
final class BodyThreads: Sendable {
  /// Half of the processors, so that the event loops keep theirs.
  private static let count = max(1, min(4, System.coreCount / 2))

  private let pool = NIOThreadPool(numberOfThreads: count)
  private let queue = Mutex(BodyQueue())

  init() { pool.start() }

  deinit { pool.shutdownGracefully { _ in } }

  /// - Parameter bytes: the size of the body that is read.
  func submit(_ bytes: Int, _ work: @escaping @Sendable () -> Void) {
    queue.withLock { $0.insert(bytes, work) }
    // The thread takes the body that is first in the queue by then, which may be another one.
    pool.submit { [self] _ in
      let next = queue.withLock { $0.popNext() }
      next()
    }
  }
}

/// The bodies that wait for a thread, in the order in which they get one.
private struct BodyQueue {
  private struct Job {
    let rank: Int
    let work: @Sendable () -> Void
  }

  /// The total size of smaller bodies that may overtake a body, as a multiple of its own size.
  private static let maxOvertaking = 32

  /// The waiting jobs by descending rank: the last one is the next to run.
  private var jobs: [Job] = []
  /// The total size of all bodies that were ever inserted, in bytes.
  private var clock = 0

  mutating func insert(_ bytes: Int, _ work: @escaping @Sendable () -> Void) {
    let rank = clock + Self.maxOvertaking * bytes
    clock += bytes
    var (low, high) = (0, jobs.count)
    while low < high {
      let middle = (low + high) / 2
      if jobs[middle].rank > rank { low = middle + 1 } else { high = middle }
    }
    jobs.insert(Job(rank: rank, work: work), at: low)
  }

  mutating func popNext() -> @Sendable () -> Void { jobs.removeLast().work }
}

/// Reads the bodies of one event loop: small ones on the loop, as far as its time allows, and large ones on other
/// threads, one at a time for each connection.
///
/// Fingerprinting a mebibyte takes milliseconds, and the work of a loop for one client delays all of its other clients.
/// Confined to its loop.
final class BodyReader: @unchecked Sendable {
  /// The maximum size of a body that is read on the loop, in bytes. The costliest form of this size takes 0.23 ms.
  private static let maxBytes = 16 << 10
  /// The maximum size of a body that is always read on the loop, and not counted, in bytes: handing it over costs more.
  private static let freeBytes = 1 << 10
  /// The maximum number of bytes that are read on the loop within a window. They take half of its time at worst.
  private static let windowBytes = 32 << 10
  private static let window = TimeAmount.milliseconds(1)

  private let threads: BodyThreads
  private var windowEnd = NIODeadline.uptimeNanoseconds(0)
  private var windowLeft = 0
  /// The connections of which a body is being read, each with those that wait behind it.
  private var waiting: [ObjectIdentifier: [UnsafeContinuation<Void, Never>]] = [:]

  init(threads: BodyThreads) { self.threads = threads }

  /// Whether a body of `bytes` bytes may be read on the loop now.
  func mayReadOnLoop(_ bytes: Int) -> Bool {
    guard bytes > Self.freeBytes else { return true }
    guard bytes <= Self.maxBytes else { return false }
    let now = NIODeadline.now()
    if now >= windowEnd {
      windowEnd = now + Self.window
      windowLeft = Self.windowBytes
    }
    guard bytes <= windowLeft else { return false }
    windowLeft -= bytes
    return true
  }

  /// Runs the work that reads a large body, once it is its connection's turn.
  func read<Reading: Sendable>(
    _ bytes: Int, of connection: ObjectIdentifier, _ work: @escaping @Sendable () -> Reading
  ) async -> Reading {
    await enter(connection)
    defer { leave(connection) }
    return await withUnsafeContinuation { continuation in
      threads.submit(bytes) { continuation.resume(returning: work()) }
    }
  }

  private func enter(_ connection: ObjectIdentifier) async {
    guard waiting[connection] != nil else {
      waiting[connection] = []
      return
    }
    await withUnsafeContinuation { waiting[connection]?.append($0) }
  }

  private func leave(_ connection: ObjectIdentifier) {
    guard waiting[connection]?.isEmpty == false else {
      waiting[connection] = nil
      return
    }
    waiting[connection]?.removeFirst().resume()
  }
}
