import Wire

/// The state machine of one HTTP/2 stream of a client: its request, its response, and its end. Holds no bytes and
/// performs no I/O.
///
/// The two directions end independently. A stream whose response is written while the client still sends, or whose
/// request is malformed, ends by RST_STREAM (RFC 9113, section 8.1).
struct HTTP2StreamMachine: ~Copyable {
  private enum Request {
    /// More frames may follow, up to the declared length. Followed by `whole`, `cutOff` or `malformed`.
    case arriving(BodyLength)
    /// The client has ended its side. Followed by `malformed` if its trailers are invalid.
    case whole
    /// The connection brings nothing more, although the request has no end.
    case cutOff
    /// The request violates HTTP: the stream ends with PROTOCOL_ERROR, once the refusal has left.
    case malformed
  }

  private enum Response {
    /// More of the response may be written. Followed by `complete`.
    case open
    /// The whole response is here; the client may not have taken all of it.
    case complete
  }

  private enum State: ~Copyable {
    /// No head has come. Followed by `open` or `closed`.
    case awaitingHead
    /// Followed by `closed`.
    case open(Request, Response)
    /// The stream was reset by either side, or is gone with its connection. Nothing is written any more.
    case closed
  }

  private var state: State

  init() { state = .awaitingHead }

  private init(_ state: consuming State) { self.state = state }
}

// The client's frames.
extension HTTP2StreamMachine {
  /// Whether the next HEADERS frame holds the request's head; else it holds trailers.
  var awaitsHead: Bool {
    switch state {
    case .awaitingHead: true
    case .open: false
    case .closed: false
    }
  }

  /// Handles a request's head that was accepted.
  mutating func didAcceptHead(_ framing: BodyFraming, isEnd: Bool) {
    switch consume state {
    case .awaitingHead: self = Self(.open(isEnd ? .whole : .arriving(BodyLength(framing)), .open))
    case .open: invariantBroken("a second head")
    case .closed: self = Self(.closed)
    }
  }

  /// Handles a request's head that was refused; a response follows, and whatever else the client sends is dropped.
  mutating func didRefuseHead(isMalformed: Bool, isEnd: Bool) {
    switch consume state {
    case .awaitingHead:
      let request: Request = isEnd ? .whole : .arriving(BodyLength(.chunked))
      self = Self(.open(isMalformed ? .malformed : request, .open))
    case .open: invariantBroken("a second head")
    case .closed: self = Self(.closed)
    }
  }

  /// The use of a frame that belongs to the request's body or ends it.
  enum FrameAction: Equatable {
    case deliver
    /// Fail the delivery's body: the request is malformed.
    case fail(WireError)
    /// Nobody wants it any more.
    case drop
  }

  /// Handles a frame of DATA with `count` bytes.
  mutating func didReceiveData(_ count: Int, isEnd: Bool) -> FrameAction {
    switch consume state {
    case .open(.arriving(var length), .open):
      do throws(WireError) {
        try length.add(count)
        if isEnd { try length.end() }
      } catch {
        self = Self(.open(.malformed, .open))
        return .fail(error)
      }
      self = Self(.open(isEnd ? .whole : .arriving(length), .open))
      return .deliver
    case .open(let request, let response):
      self = Self(.open(Self.dropping(request, isEnd: isEnd), response))
    case let other: self = Self(other)
    }
    return .drop
  }

  /// Handles the fields after the body.
  mutating func didReceiveTrailers(isEnd: Bool) -> FrameAction {
    switch consume state {
    case .open(.arriving(let length), .open):
      do throws(WireError) {
        guard isEnd else { throw .forbiddenTrailer }
        try length.end()
      } catch {
        self = Self(.open(.malformed, .open))
        return .fail(error)
      }
      self = Self(.open(.whole, .open))
      return .deliver
    case .open(let request, let response):
      self = Self(.open(Self.dropping(request, isEnd: isEnd), response))
    case let other: self = Self(other)
    }
    return .drop
  }

  private static func dropping(_ request: Request, isEnd: Bool) -> Request {
    if case .arriving = request, isEnd { return .whole }
    return request
  }

  /// Handles trailers with a field that violates HTTP.
  mutating func didRefuseTrailers() {
    switch consume state {
    case .open(_, let response): self = Self(.open(.malformed, response))
    case let other: self = Self(other)
    }
  }

  /// Handles the end of the connection's frames.
  ///
  /// - Returns: Whether to fail the delivery's body, since it has no end.
  mutating func inputClosed() -> Bool {
    switch consume state {
    case .open(.arriving, let response):
      self = Self(.open(.cutOff, response))
      return response == .open
    case let other: self = Self(other)
    }
    return false
  }
}

// The delivery's response.
extension HTTP2StreamMachine {
  /// Whether frames may be written.
  var isOpen: Bool {
    switch state {
    case .awaitingHead: true
    case .open: true
    case .closed: false
    }
  }

  /// Whether the whole response is here.
  var isResponseComplete: Bool {
    switch state {
    case .awaitingHead: false
    case .open(_, let response): response == .complete
    case .closed: true
    }
  }

  /// Whether the stream ends with an error after its response, whose last frame must then leave it open.
  var isMalformed: Bool {
    switch state {
    case .awaitingHead: return false
    case .open(let request, _):
      if case .malformed = request { return true }
      return false
    case .closed: return false
    }
  }

  /// Handles the end of a response, which is here as a whole.
  mutating func responseCompleted() {
    switch consume state {
    case .open(let request, .open): self = Self(.open(request, .complete))
    case .open(_, .complete): invariantBroken("a second response to a request")
    case .awaitingHead: invariantBroken("a response without a request")
    case .closed: self = Self(.closed)
    }
  }

  /// The reset that follows a response.
  enum ResponseWrittenAction: Equatable {
    case nothing
    /// Reset with PROTOCOL_ERROR.
    case resetMalformed
    /// Reset with NO_ERROR: the client shall stop sending a body that nobody reads.
    case stopUpload
  }

  /// Handles the moment at which everything written has left, and nothing waits.
  mutating func didWriteAll() -> ResponseWrittenAction {
    switch consume state {
    case .open(let request, .complete):
      switch request {
      case .whole:
        self = Self(.open(request, .complete))
        return .nothing
      case .arriving, .cutOff:
        self = Self(.closed)
        return .stopUpload
      case .malformed:
        self = Self(.closed)
        return .resetMalformed
      }
    case let other: self = Self(other)
    }
    return .nothing
  }

  /// Handles the end of the stream, which is reset or gone.
  mutating func close() { self = Self(.closed) }
}
