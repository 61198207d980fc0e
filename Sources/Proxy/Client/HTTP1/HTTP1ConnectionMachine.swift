import Wire

/// The state machine of a client's HTTP/1.1 connection: the order of requests and responses, and the connection's end.
/// Holds no bytes and performs no I/O.
///
/// One turn is under way at a time. Requests that the client pipelines behind it stay undecoded until its response
/// is written. The client may end its sending side at any point; complete requests still get their responses.
struct HTTP1ConnectionMachine: ~Copyable {
  /// The client's sending side.
  enum Input { case open, ended }

  /// A request and its response.
  struct Turn {
    enum Request {
      /// The end of the request has not been decoded. Followed by `whole` or `broken`.
      case arriving
      case whole
      /// The request has no end: its framing is invalid, or the client stopped within it. Nothing more is decoded.
      case broken
    }

    enum Response {
      /// The head has not been written. Followed by `begun`.
      case none
      /// A part has been written. Followed by `queued`, or by the end of the turn.
      case begun(isLast: Bool)
      /// The response is complete, but the client has not taken all of it. Followed by the end of the turn.
      case queued(isLast: Bool)
    }

    var input: Input
    var request: Request
    var response = Response.none

    /// Whether the connection closes after the response.
    fileprivate var isLast: Bool {
      switch response {
      case .none: true
      case .begun(let isLast), .queued(let isLast): isLast
      }
    }
  }

  private enum State: ~Copyable {
    /// Between turns. Only before the first head may the client still turn out to speak HTTP/2. Followed by
    /// `serving`, `closing` or `closed`.
    case idle(Input, isFirst: Bool)
    /// A turn is under way. Followed by `idle`, `tunnel`, `closing` or `closed`.
    case serving(Turn)
    /// Client and backend have switched protocols: bytes pass unchanged. Followed by `closing` or `closed`.
    case tunnel(Input, isQueued: Bool)
    /// The last response has been written. The connection closes once the client has taken it; bytes that still arrive
    /// are dropped. Followed by `closed`.
    case closing
    /// The connection is cut, gone, or left to HTTP/2.
    case closed
  }

  private var state: State

  init() { state = .idle(.open, isFirst: true) }

  private init(_ state: consuming State) { self.state = state }
}

// The client's bytes.
extension HTTP1ConnectionMachine {
  enum BytesAction { case decode, passOn, drop }

  /// The use of bytes that have arrived.
  var bytesAction: BytesAction {
    switch state {
    case .idle: .decode
    case .serving(let turn): turn.request == .broken ? .drop : .decode
    case .tunnel: .passOn
    case .closing: .drop
    case .closed: .drop
    }
  }

  /// The part of a request that may be decoded now.
  enum Decoding {
    /// The next head, while the client takes its responses: otherwise a client that only sends would fill the memory.
    case head
    /// The body, as far as the delivery wants it.
    case body
    /// The body, although the delivery does not want it yet: nothing follows it, so it is complete or broken.
    case restOfBody
    case nothing
  }

  var decoding: Decoding {
    switch state {
    case .idle: return .head
    case .serving(let turn):
      guard turn.request == .arriving else { return .nothing }
      return turn.input == .ended ? .restOfBody : .body
    case .tunnel: return .nothing
    case .closing: return .nothing
    case .closed: return .nothing
    }
  }

  /// The condition under which the socket is read.
  enum Reading {
    /// There is room for undecoded bytes, or some may be decoded.
    case whileRoom
    /// The tunnel's other end takes bytes.
    case whileTaken
    /// Always: the bytes are dropped, and the end of input must be seen.
    case always
    /// As before: nothing more comes.
    case unchanged
  }

  var reading: Reading {
    switch state {
    case .idle(let input, _): return input == .ended ? .unchanged : .whileRoom
    case .serving(let turn):
      guard turn.input == .open else { return .unchanged }
      return turn.request == .broken ? .always : .whileRoom
    case .tunnel(let input, _): return input == .ended ? .unchanged : .whileTaken
    case .closing: return .always
    case .closed: return .always
    }
  }

  /// Handles a decoded head, which begins a turn.
  mutating func didDecodeHead(hasBody: Bool) {
    switch consume state {
    case .idle(let input, _):
      self = Self(.serving(Turn(input: input, request: hasBody ? .arriving : .whole)))
    case .serving: invariantBroken("a head decoded within a turn")
    case .tunnel: invariantBroken("a head decoded in a tunnel")
    case let other: self = Self(other)
    }
  }

  /// Handles the decoded end of the request.
  mutating func didDecodeEnd() {
    switch consume state {
    case .serving(var turn):
      if turn.request == .arriving { turn.request = .whole }
      self = Self(.serving(turn))
    case let other: self = Self(other)
    }
  }

  enum FramingErrorAction {
    /// Leave the connection to HTTP/2 (RFC 9113, section 3.3).
    case becomeHTTP2
    /// Respond with an error and close: the boundaries of the bytes that follow are unknown.
    case refuse
    /// Fail the delivery's body; the connection closes after its response.
    case failBody
    case nothing
  }

  /// Handles bytes that are not HTTP/1.1.
  ///
  /// - Parameter isHTTP2: Whether they begin with the connection preface of HTTP/2.
  mutating func didFailDecoding(isHTTP2: Bool) -> FramingErrorAction {
    switch consume state {
    case .idle(_, let isFirst):
      guard isFirst, isHTTP2 else {
        self = Self(.closing)
        return .refuse
      }
      self = Self(.closed)
      return .becomeHTTP2
    case .serving(var turn):
      turn.request = .broken
      self = Self(.serving(turn))
      return .failBody
    case let other:
      self = Self(other)
      return .nothing
    }
  }

  /// Whether the client has ended its sending side.
  var hasInputEnded: Bool {
    switch state {
    case .idle(let input, _): input == .ended
    case .serving(let turn): turn.input == .ended
    case .tunnel(let input, _): input == .ended
    case .closing: false
    case .closed: false
    }
  }

  enum InputEndedAction { case decode, endTunnelBody, nothing }

  /// Handles the end of the client's sending side.
  mutating func inputEnded() -> InputEndedAction {
    switch consume state {
    case .idle(_, let isFirst):
      self = Self(.idle(.ended, isFirst: isFirst))
      return .decode
    case .serving(var turn):
      turn.input = .ended
      self = Self(.serving(turn))
      return .decode
    case .tunnel(_, let isQueued):
      self = Self(.tunnel(.ended, isQueued: isQueued))
      return .endTunnelBody
    case let other:
      self = Self(other)
      return .nothing
    }
  }

  enum DecodedAction {
    case nothing
    /// Fail the delivery's body: the client stopped within the request.
    case failBody
    /// Close once everything written has left: no request can follow.
    case close
  }

  /// Handles the end of a decoding step: everything that may be decoded now has been.
  ///
  /// - Parameter isWritable: Whether the client takes responses, and the next head could have been decoded.
  mutating func didDecode(isWritable: Bool) -> DecodedAction {
    switch consume state {
    case .idle(let input, let isFirst):
      guard input == .ended, isWritable else {
        self = Self(.idle(input, isFirst: isFirst))
        return .nothing
      }
      self = Self(.closing)
      return .close
    case .serving(var turn):
      let isCutOff = turn.input == .ended && turn.request == .arriving
      if isCutOff { turn.request = .broken }
      self = Self(.serving(turn))
      return isCutOff ? .failBody : .nothing
    case let other:
      self = Self(other)
      return .nothing
    }
  }
}

// The delivery's response.
extension HTTP1ConnectionMachine {
  /// Handles a response whose head is about to be written. Early responses, before the request's end, are the
  /// connection's last.
  ///
  /// - Parameters:
  ///   - isPersistent: Whether the client and the proxy want the connection to persist.
  ///   - isDelimitedByClose: Whether only the connection's end marks the end of the response.
  /// - Returns: Whether the connection closes for a reason that the head must state.
  mutating func responseBegins(isPersistent: Bool, isDelimitedByClose: Bool) -> Bool {
    switch consume state {
    case .serving(var turn):
      guard case .none = turn.response else { invariantBroken("a second response to a request") }
      let isLast = !isPersistent || turn.request != .whole
      turn.response = .begun(isLast: isLast || isDelimitedByClose)
      self = Self(.serving(turn))
      return isLast
    case .idle: invariantBroken("a response without a request")
    case .tunnel: invariantBroken("a response in a tunnel")
    case let other: self = Self(other)
    }
    return true
  }

  /// Handles a response of 101 that is about to be written.
  ///
  /// - Returns: Whether the client has ended its sending side already.
  mutating func protocolsSwitch() -> Bool {
    switch consume state {
    case .serving(let turn):
      guard case .none = turn.response else { invariantBroken("protocols switched within a response") }
      self = Self(.tunnel(turn.input, isQueued: false))
      return turn.input == .ended
    case .idle: invariantBroken("protocols switched without a request")
    case .tunnel: invariantBroken("protocols switched twice")
    case let other: self = Self(other)
    }
    return false
  }

  /// Handles the end of a response that waits behind bytes that the client has not taken.
  mutating func responseQueued() {
    switch consume state {
    case .serving(var turn):
      guard case .begun = turn.response else {
        invariantBroken("the end of a response waits that has not begun")
      }
      turn.response = .queued(isLast: turn.isLast)
      self = Self(.serving(turn))
    case .tunnel(let input, _): self = Self(.tunnel(input, isQueued: true))
    case let other: self = Self(other)
    }
  }

  /// Whether the turn ends once the client has taken what waits for it.
  var isResponseQueued: Bool {
    switch state {
    case .serving(let turn):
      if case .queued = turn.response { return true }
      return false
    case .tunnel(_, let isQueued): return isQueued
    case .idle: return false
    case .closing: return false
    case .closed: return false
    }
  }

  enum ResponseEndedAction {
    /// Wait for bytes of the next request.
    case awaitNext
    /// Decode the next request: bytes of it are here, or none will come.
    case decodeNext
    /// Close once everything written has left.
    case close
    /// End the sending side and read on for a moment. To close with bytes unread would reset the connection, and the
    /// client might lose the response.
    case linger
    case nothing
  }

  /// Handles the end of a response that has been written whole.
  ///
  /// - Parameters:
  ///   - hasUndecoded: Whether bytes behind the request wait to be decoded.
  ///   - hasUnread: Whether more bytes wait in the kernel; called only if the connection ends.
  mutating func responseEnded(
    hasUndecoded: Bool, hasUnread: () -> Bool = { false }
  ) -> ResponseEndedAction {
    switch consume state {
    case .serving(let turn):
      if case .none = turn.response { invariantBroken("a response ends that has not begun") }
      guard turn.request == .whole, !turn.isLast else {
        self = Self(.closing)
        return turn.request == .whole && !hasUndecoded && !hasUnread() ? .close : .linger
      }
      self = Self(.idle(turn.input, isFirst: false))
      return hasUndecoded || turn.input == .ended ? .decodeNext : .awaitNext
    case .tunnel(let input, _):
      self = Self(.closing)
      return input == .ended && !hasUndecoded ? .close : .linger
    case .idle: invariantBroken("the end of a response without a request")
    case let other: self = Self(other)
    }
    return .nothing
  }
}

// The connection's end.
extension HTTP1ConnectionMachine {
  enum TimeoutAction { case extend, refuse, close }

  /// Handles the end of the present state's time limit, without an event before it.
  mutating func timedOut(hasUndecoded: Bool) -> TimeoutAction {
    switch consume state {
    case .idle:
      self = Self(.closing)
      return hasUndecoded ? .refuse : .close
    case .serving(let turn):
      // Its delivery has time-outs of its own.
      self = Self(.serving(turn))
      return .extend
    case .tunnel: self = Self(.closing)
    case let other: self = Self(other)
    }
    return .close
  }

  /// Handles the shutdown of the proxy.
  ///
  /// - Returns: Whether to close now: nothing is under way, and no part of a request is here.
  mutating func drain(hasUndecoded: Bool) -> Bool {
    switch consume state {
    case .idle(let input, let isFirst):
      guard !hasUndecoded else {
        self = Self(.idle(input, isFirst: isFirst))
        return false
      }
      self = Self(.closing)
      return true
    case .closing:
      self = Self(.closing)
      return true
    case let other:
      self = Self(other)
      return false
    }
  }

  /// Handles the end of the connection, which is gone or being cut.
  mutating func close() { self = Self(.closed) }
}
