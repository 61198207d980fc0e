/// How a connection of HTTP/2 lives and ends (RFC 9113, section 6.8). Decides; writes nothing.
///
/// A client opens streams while the word that it should not is still on its way. So the end is announced first, without
/// saying which streams count; once the client has heard that, the last one that counts is named, and when all have
/// ended the connection is closed.
struct SessionLife {
  enum Stage { case serving, announced, named, closed }

  /// What the session does about an event.
  enum Action: Equatable {
    case nothing
    /// Tell the client that it should open no more streams, and ask it to confirm.
    case announce
    /// Name the last stream that is answered.
    case name(last: Int)
    /// Name it, and close.
    case close(last: Int)
  }

  private let maxRunning: Int
  private(set) var stage = Stage.serving
  /// Streams that are open.
  private(set) var streams = 0
  /// Deliveries that are run and not answered, also of streams that were reset: to open and reset streams is no way
  /// round the limit.
  private(set) var running = 0
  /// The highest stream that was opened.
  private(set) var last = 0

  init(maxRunning: Int) { self.maxRunning = maxRunning }

  mutating func opened(_ id: Int) {
    streams += 1
    last = max(last, id)
  }

  mutating func ended() -> Action {
    streams -= 1
    return closeIfOver()
  }

  /// Whether one more delivery may be run; `runEnded` follows each that may.
  mutating func mayRun() -> Bool {
    guard running < maxRunning else { return false }
    running += 1
    return true
  }

  mutating func runEnded() { running -= 1 }

  /// The connection shall end.
  mutating func drain() -> Action {
    guard stage == .serving else { return .nothing }
    stage = .announced
    return .announce
  }

  /// The client knows, or has had the time to.
  mutating func confirmed() -> Action {
    guard stage == .announced else { return .nothing }
    stage = .named
    let action = closeIfOver()
    return action == .nothing ? .name(last: last) : action
  }

  private mutating func closeIfOver() -> Action {
    guard stage == .named, streams == 0 else { return .nothing }
    stage = .closed
    return .close(last: last)
  }
}
