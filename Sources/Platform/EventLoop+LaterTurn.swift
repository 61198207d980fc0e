import NIOCore

/// The turns of an event loop.
public enum LoopTurn {
  /// The time until a later turn: longer than the writes that a turn leads to. The loop runs all that is due before it
  /// looks at its sockets again, and a pause of 100 µs was over before that.
  public static let pause = TimeAmount.milliseconds(1)
}

extension EventLoop {
  /// Runs a closure in a later turn of the loop, once others' sockets were read. Call it on the loop.
  ///
  /// The pause begins behind the work of this turn.
  public func inLaterTurn(_ body: @escaping () -> Void) {
    let loop = assumeIsolated()
    loop.execute { _ = loop.scheduleTask(in: LoopTurn.pause) { body() } }
  }
}
