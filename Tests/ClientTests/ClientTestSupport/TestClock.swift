import Foundation
public import SemelClient
import Synchronization

/// A clock that a test owns.
///
/// On an instant one a sleep ends at once and takes its time all the same: tests of days take milliseconds. On a manual
/// one a sleep ends when the test has advanced the time far enough.
public final class TestClock: Clock, Sendable {
  public struct Instant: InstantProtocol {
    public var offset: Duration
    public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
    public func duration(to other: Instant) -> Duration { other.offset - offset }
    public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
  }

  private struct State {
    var now = Instant(offset: .zero)
    var sleeps: [Duration] = []
    var next = 0
    var sleepers: [Int: (deadline: Instant, continuation: CheckedContinuation<Void, Never>)] = [:]
  }

  private let isManual: Bool
  private let state = Mutex(State())

  public init(isManual: Bool = false) {
    self.isManual = isManual
  }

  public var now: Instant { state.withLock { $0.now } }
  public var minimumResolution: Duration { .nanoseconds(1) }
  /// The lengths of the sleeps, in their order.
  public var sleeps: [Duration] { state.withLock { $0.sleeps } }

  /// The sleeps of a manual clock that began.
  public var sleepCount: Int { state.withLock { $0.next } }

  public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    try Task.checkCancellation()
    if isManual { return try await suspend(until: deadline) }
    state.withLock { state in
      state.sleeps.append(state.now.duration(to: deadline))
      state.now = max(state.now, deadline)
    }
    await Task.yield()
  }

  private func suspend(until deadline: Instant) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if deadline <= state.now || Task.isCancelled { return true }
          state.sleepers[id] = (deadline, continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume()
    }
    try Task.checkCancellation()
  }

  public func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now = state.now.advanced(by: duration)
      let due = state.sleepers.filter { $0.value.deadline <= state.now }
      for id in due.keys { state.sleepers[id] = nil }
      return due.values.map(\.continuation)
    }
    for sleeper in due { sleeper.resume() }
  }
}

extension ClientEnvironment {
  /// A time that a test owns, from 1 January 2026 on, and random bits that are all `random`, or the system's.
  public static func test(_ clock: TestClock, random: UInt64? = .max) -> ClientEnvironment {
    ClientEnvironment(
      clock: clock,
      now: {
        let (seconds, attoseconds) = clock.now.offset.components
        return Date(timeIntervalSince1970: 1_767_225_600 + Double(seconds) + Double(attoseconds) * 1e-18)
      },
      random: { random ?? UInt64.random(in: 0...UInt64.max) })
  }
}

extension Origin {
  /// An origin that no test connects to.
  public static let example: Origin = {
    guard let origin = Origin("https://api.example.com") else { preconditionFailure("The origin is valid.") }
    return origin
  }()
}
