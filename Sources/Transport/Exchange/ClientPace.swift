import NIOCore

/// The pace of an exchange's client: whether it is awaited, and since when it has moved too little. Pure: the time is an
/// argument.
///
/// A body whose first `step` bytes have not passed has a client that pauses within them, or else they would have been
/// here when the exchange began. The response begins anew: its first pause gives the client its whole time.
struct ClientPace {
  /// The number of bytes after which the pace is looked at: as many as are awaited before a request begins.
  static let step = 64 << 10

  /// Whether the exchange waits for the client's body.
  var isStarving = false
  /// Whether the pool knows the exchange as one that its client may hold up (`ConnectionPool.makeRoom`).
  var isTracked = false
  /// Whether reading the response is paused.
  private(set) var isPaused = false
  private var hasPaused = false
  /// The time at which the latest `step` bytes of a body had passed, or of the response's first pause; zero before.
  private(set) var movedAt = NIODeadline.uptimeNanoseconds(0)
  /// The number of bytes that have passed since.
  private var moved = 0

  /// Whether the client is awaited now: for more of its body, to which there is no response yet, or until it has taken
  /// what has arrived of the response.
  func isAwaited(hasHead: Bool, hasBody: Bool) -> Bool { isStarving && !hasHead || isPaused && hasBody }

  /// Notes whether reading the response is paused.
  mutating func setPaused(_ isPaused: Bool, now: @autoclosure () -> NIODeadline) {
    self.isPaused = isPaused
    guard isPaused, !hasPaused else { return }
    hasPaused = true
    restart(now())
  }

  /// Counts bytes that the client has sent or taken.
  mutating func didMove(_ count: Int, now: @autoclosure () -> NIODeadline) {
    moved += count
    if moved >= Self.step { restart(now()) }
  }

  private mutating func restart(_ now: NIODeadline) {
    moved = 0
    movedAt = now
  }
}
