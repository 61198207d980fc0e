import Glibc
import NIOCore
import NIOPosix
import Platform
import Synchronization
import Wire

/// Reads the bodies of one event loop: small ones on the loop, as far as its time allows, and large ones on other
/// threads, of each connection one at a time in each lane.
///
/// Fingerprinting a mebibyte takes milliseconds, and the work of a loop for one client delays all of its other clients.
/// Confined to its loop.
final class BodyReader: @unchecked Sendable {
  /// The maximum size of a body that is read on the loop, in bytes. The costliest body of this size takes 0.23 ms.
  private static let maxBytes = 16 << 10
  /// The maximum size of a body that is always read on the loop, and not counted, in bytes: handing it over costs more.
  private static let freeBytes = 1 << 10
  /// The maximum number of bytes that are read on the loop within a window. They take half of its time at worst.
  private static let windowBytes = 32 << 10
  private static let window = TimeAmount.milliseconds(1)

  private let threads: BodyThreads
  private let loop: any EventLoop
  /// The end of the current window; `nil` before the first.
  private var windowEnd: NIODeadline?
  private var windowLeft = 0
  /// The turns of which a body is being read, each with those that wait behind it.
  private var waiting: [Turn: [UnsafeContinuation<Void, Never>]] = [:]

  /// A connection's bodies of one lane. Bodies up to a mebibyte do not wait for larger ones: a connection may be a
  /// gateway's, which many clients share.
  private struct Turn: Hashable {
    let connection: ObjectIdentifier
    let kind: BodyLane.Kind
  }

  init(threads: BodyThreads, loop: any EventLoop) {
    self.threads = threads
    self.loop = loop
  }

  /// Whether a body of `bytes` bytes may be read on the loop now.
  func mayReadOnLoop(_ bytes: Int) -> Bool {
    loop.assertInEventLoop()
    guard bytes > Self.freeBytes else { return true }
    guard bytes <= Self.maxBytes else { return false }
    let now = NIODeadline.now()
    if windowEnd.map({ now >= $0 }) ?? true {
      windowEnd = now + Self.window
      windowLeft = Self.windowBytes
    }
    guard bytes <= windowLeft else { return false }
    windowLeft -= bytes
    return true
  }

  /// Runs the work that reads a large body, once it is its turn on its connection.
  func read<Reading: Sendable>(
    _ bytes: Int, of connection: ObjectIdentifier, _ work: @escaping @Sendable () -> Reading
  ) async -> Reading {
    await run(bytes, in: Turn(connection: connection, kind: BodyLane.Kind(ofBody: bytes)), work)
  }

  /// Runs the work that verifies a token, once it is its turn on its connection.
  ///
  /// - Parameter cost: The time that the work may take, in microseconds.
  func verify<Verdict: Sendable>(
    _ cost: Int, of connection: ObjectIdentifier, _ work: @escaping @Sendable () -> Verdict
  ) async -> Verdict {
    await run(cost, in: Turn(connection: connection, kind: .tokens), work)
  }

  private func run<Result: Sendable>(
    _ cost: Int, in turn: Turn, _ work: @escaping @Sendable () -> Result
  ) async -> Result {
    await enter(turn)
    defer { leave(turn) }
    return await withUnsafeContinuation { continuation in
      threads.submit(cost, to: turn.kind) { continuation.resume(returning: work()) }
    }
  }

  private func enter(_ turn: Turn) async {
    loop.assertInEventLoop()
    guard waiting[turn] != nil else {
      waiting[turn] = []
      return
    }
    await withUnsafeContinuation { waiting[turn]?.append($0) }
  }

  private func leave(_ turn: Turn) {
    loop.assertInEventLoop()
    invariant(waiting[turn] != nil, "a turn ends that nobody has")
    guard waiting[turn]?.isEmpty == false else {
      waiting[turn] = nil
      return
    }
    waiting[turn]?.removeFirst().resume()
  }
}

/// The threads on which large bodies are read and tokens verified, shared by all event loops.
///
/// A body that has been begun is read to its end, which takes up to 15 ms for a mebibyte. Bodies above that size
/// therefore have a lane of their own, with threads of its own, and so do tokens: who may send a body must not wait for
/// the bodies of others.
final class BodyThreads: Sendable {
  /// Half of the processors, so that the event loops keep theirs.
  private static let count = max(1, min(4, System.coreCount / 2))

  private let lanes: [BodyLane]

  /// - Parameter makePool: Makes the pool of a number of threads.
  init(makePool: (Int) -> any WorkPool = { ThreadPool(threads: $0) }) {
    lanes = BodyLane.Kind.allCases.map { BodyLane(on: makePool(Self.count), niceness: $0.niceness) }
  }

  /// - Parameter cost: The size of the body in bytes, or the time that the token may take in microseconds: cheap work
  ///   of a lane goes first.
  func submit(_ cost: Int, to kind: BodyLane.Kind, _ work: @escaping @Sendable () -> Void) {
    lanes[kind.rawValue].submit(cost, work)
  }
}

/// The threads for bodies up to a mebibyte, for larger ones, or for tokens, whose size is the time that they cost.
///
/// Smaller bodies go first, so that they do not wait for many large ones. The bytes that may overtake a body are
/// limited, so that each body gets its turn.
final class BodyLane: Sendable {
  enum Kind: Int, CaseIterable {
    case tokens, upTo1MiB, larger

    /// - Parameter bytes: The size of a body.
    init(ofBody bytes: Int) { self = bytes <= 1 << 20 ? .upTo1MiB : .larger }

    /// The nice value of the threads. A thread that competes with one of a value lower by 3 gets half as much time: the
    /// event loops and tokens have the processors first, then smaller bodies.
    var niceness: Int32 {
      switch self {
      case .tokens: 0
      case .upTo1MiB: 3
      case .larger: 9
      }
    }
  }

  private let pool: any WorkPool
  private let niceness: Int32
  private let queue = Mutex(BodyQueue())

  init(on pool: any WorkPool, niceness: Int32) {
    self.pool = pool
    self.niceness = niceness
  }

  func submit(_ bytes: Int, _ work: @escaping @Sendable () -> Void) {
    queue.withLock { $0.insert(bytes, work) }
    // The thread takes the body that is first in the queue by then, which may be another one.
    pool.submit { [self] in
      lowerPriority()
      let next = queue.withLock { $0.popNext() }
      next()
    }
  }

  /// Lowers the priority of the calling thread: on Linux a nice value belongs to a thread. Where the system refuses it,
  /// the thread keeps its priority.
  private func lowerPriority() {
    if niceness > 0 { setpriority(Int32(PRIO_PROCESS.rawValue), 0, niceness) }
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

  mutating func popNext() -> @Sendable () -> Void {
    invariant(!jobs.isEmpty, "a thread takes a body that nobody has given it")
    return jobs.removeLast().work
  }
}
