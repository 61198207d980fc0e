/// The delays from which a time-out proves nothing about its peer, because the process stood still or its loop was
/// busy, and the time to read what has arrived meanwhile. All in milliseconds.
public enum Lateness {
  /// The delay from which a check counts as late. The loop's own timers fire up to two ticks of 10 ms late.
  public static let tolerance: Int64 = 50
  /// The time to read one reply: many times what its sender took for it.
  public static let replyGrace: Int64 = 100
  /// The time to read what waits on all sockets of a loop.
  public static let uploadGrace: Int64 = 1000
}
