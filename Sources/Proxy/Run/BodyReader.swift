import NIOCore
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
