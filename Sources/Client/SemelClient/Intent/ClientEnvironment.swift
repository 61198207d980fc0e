#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Time and randomness of a client, which tests replace.
public struct ClientEnvironment: Sendable {
  /// The clock of waits. It also tells the time between events of one process.
  public var clock: any Clock<Duration>
  /// The wall clock, for what is stored. It may be wrong, and may be set back.
  public var now: @Sendable () -> Date
  /// 64 random bits.
  public var random: @Sendable () -> UInt64

  /// An environment of a test.
  public init(
    clock: any Clock<Duration>, now: @escaping @Sendable () -> Date, random: @escaping @Sendable () -> UInt64
  ) {
    self.clock = clock
    self.now = now
    self.random = random
  }

  /// The system's clocks and its generator of random numbers.
  public static let system = ClientEnvironment(
    clock: ContinuousClock(), now: { Date() }, random: { UInt64.random(in: 0...UInt64.max) })
}

extension Clock where Duration == Swift.Duration {
  /// A function that returns the time since this call.
  package func stopwatch() -> @Sendable () -> Swift.Duration {
    let start = now
    return { start.duration(to: now) }
  }
}
