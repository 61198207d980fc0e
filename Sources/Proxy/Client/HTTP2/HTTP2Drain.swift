import Wire

/// The state machine of an HTTP/2 connection's streams: which are refused (RFC 9113, section 5.1.2), and the connection's
/// orderly end (section 6.8). Performs no I/O.
///
/// A client opens streams while the announcement that it should not is still under way. So the end is announced first
/// without a statement on which streams count. Once the client has confirmed that, the last stream that counts is
/// named, and when all have ended the connection is closed.
struct HTTP2Drain {
  enum Stage {
    /// Streams are accepted. Followed by `announced`.
    case serving
    /// The client may not know of the end yet. Followed by `named`.
    case announced
    /// The last stream is named. Followed by `closed` when no stream is open.
    case named
    case closed
  }

  /// The session's next step.
  enum Action: Equatable {
    case nothing
    /// Announce the end to the client and ask it to confirm.
    case announce
    /// Name the last stream that gets a response.
    case name(last: Int)
    /// Name it, and close.
    case close(last: Int)
  }

  /// The maximum number of open streams, and of deliveries that run.
  private let maxStreams: Int
  private(set) var stage = Stage.serving
  /// The number of open streams.
  private(set) var streams = 0
  /// The number of deliveries that run without a response yet, also of streams that were reset: opening and resetting
  /// streams is no way round the limit.
  private(set) var running = 0
  /// The highest stream that was taken. 0, which is no request's stream, if none was: so GOAWAY states it (RFC 9113,
  /// section 6.8).
  private(set) var last = 0

  init(maxStreams: Int) { self.maxStreams = maxStreams }

  /// Counts a new stream, whose end must follow. False if it must be refused: it is one more than may be open (RFC 9113,
  /// section 5.1.2), or above the last one that was named.
  mutating func opened(_ id: Int) -> Bool {
    streams += 1
    guard streams <= maxStreams else { return false }
    switch stage {
    case .serving, .announced:
      last = max(last, id)
      return true
    case .named, .closed: return false
    }
  }

  /// Handles the end of a stream.
  mutating func ended() -> Action {
    streams -= 1
    return closeIfOver()
  }

  /// Acquires a slot for one more delivery; false if there is none. `release` must follow.
  mutating func acquire() -> Bool {
    guard running < maxStreams else { return false }
    running += 1
    return true
  }

  /// Releases the slot of a delivery.
  mutating func release() {
    invariant(running > 0, "the slot of a delivery is released twice")
    running -= 1
  }

  /// Begins the end of the connection.
  mutating func begin() -> Action {
    guard stage == .serving else { return .nothing }
    stage = .announced
    return .announce
  }

  /// Handles the client's confirmation of the announcement, or the end of the time for it.
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
