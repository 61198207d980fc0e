import Glibc
import NIOCore
import NIOPosix
import Platform
import Synchronization
import Wire

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
