import Wire

/// The state machine of a delivery's response: its interim responses, its beginning and its end. Performs no I/O.
struct ResponseProgress: ~Copyable {
  private enum State {
    /// Only interim responses may have been written. Followed by `begun`, `tunnel` or `ended`.
    case none(Interim)
    /// The head has been written. Followed by `ended`.
    case begun
    /// A response of 101 has been written: bytes pass unchanged, both ways. Followed by `ended`.
    case tunnel
    /// The response is written, or cut.
    case ended
  }

  private struct Interim {
    /// Whether the client waits for 100 (Continue).
    var isContinueDue: Bool
    /// The number of the backend's interim responses that were passed on.
    var hints = 0
  }

  /// The maximum number of interim responses that are passed on: enough for hints, and for a sign of life every twenty
  /// seconds during half an hour.
  static var maxHints: Int { 100 }

  private var state: State

  /// - Parameter expectsContinue: Whether the client waits for 100 (Continue) before it sends its body.
  init(expectsContinue: Bool) { state = .none(Interim(isContinueDue: expectsContinue)) }

  var hasNotBegun: Bool {
    if case .none = state { true } else { false }
  }

  /// Whether more of the response may be written.
  var isBegun: Bool {
    switch state {
    case .begun, .tunnel: true
    case .none, .ended: false
    }
  }

  var isTunnel: Bool {
    if case .tunnel = state { true } else { false }
  }

  var isEnded: Bool {
    if case .ended = state { true } else { false }
  }
}

// Interim responses.
extension ResponseProgress {
  /// Whether the client waits for 100 (Continue).
  var isContinueDue: Bool {
    if case .none(let interim) = state { interim.isContinueDue } else { false }
  }

  /// Takes the occasion for 100 (Continue), which is due once. Returns whether to write it: a client that sends its
  /// body unasked does not wait for it.
  mutating func takeContinue(hasBody: Bool) -> Bool {
    guard case .none(var interim) = state, interim.isContinueDue else { return false }
    interim.isContinueDue = false
    state = .none(interim)
    return !hasBody
  }

  /// Counts an interim response of the backend. Returns whether to pass it on. It may be left out, and is if the client
  /// takes nothing now, since it would wait in memory, or if the backend has sent too many.
  mutating func takeHint(isWritable: Bool) -> Bool {
    guard case .none(var interim) = state, interim.hints < Self.maxHints, isWritable else { return false }
    interim.hints += 1
    state = .none(interim)
    return true
  }
}

// The final response.
extension ResponseProgress {
  /// Handles a response that is about to be written whole, which ends it. Returns whether it may be written.
  mutating func respond() -> Bool {
    guard case .none = state else { return false }
    state = .ended
    return true
  }

  /// Notes that the head of the response is written.
  mutating func begin() {
    guard case .none = state else { invariantBroken("a response begun twice") }
    state = .begun
  }

  /// Notes that a response of 101 is written.
  mutating func becomeTunnel() {
    guard case .none = state else {
      invariantBroken("protocols switched in a response")
    }
    state = .tunnel
  }

  /// Handles the end of the response. Returns whether it may be written.
  mutating func end() -> Bool {
    guard isBegun else { return false }
    state = .ended
    return true
  }

  /// Notes that the response is cut.
  mutating func cut() { state = .ended }
}

// The request's body beside the response.
extension ResponseProgress {
  /// The time that the client has to send more of its body.
  enum BodyTimeLimit {
    /// `body_timeout`: the backend waits for the body.
    case upload
    /// As long as a tunnel may be silent: once the response has begun the two sides take turns, as in gRPC.
    case conversation
    case unlimited
  }

  var bodyTimeLimit: BodyTimeLimit {
    switch state {
    case .none, .ended: .upload
    case .begun: .conversation
    case .tunnel: .unlimited
    }
  }
}
