import Idempotency
import NIOCore
import Wire

/// The state machine of a request's body between the client's connection and its consumer. Performs no I/O.
struct RequestBodyIntake: ~Copyable {
  private enum End {
    /// More may arrive. Followed by `whole` or `failed`.
    case open
    /// The client has sent all of the body. Followed by `open` if client and backend switch protocols.
    case whole
    /// The body cannot become whole. Bytes that still arrive are dropped; those before are given out.
    case failed(Problem)
  }

  /// The bytes that arrived and were not taken.
  private var bytes = ByteBuffer()
  private var end: End
  /// The number of bytes above which the connection holds the body back.
  private var highWater = 64 << 10

  init(isWhole: Bool) { end = isWhole ? .whole : .open }
}

// The connection's side.
extension RequestBodyIntake {
  /// Whether more may be decoded now.
  var wantsMore: Bool { bytes.readableBytes < highWater }

  /// Whether bytes that arrive belong to the body.
  var isOpen: Bool {
    if case .open = end { true } else { false }
  }

  mutating func append(_ piece: ByteBuffer) {
    guard isOpen else { return }
    bytes.follow(with: piece)
  }

  /// Handles the end of the body.
  mutating func finish() {
    if isOpen { end = .whole }
  }

  /// Handles a body that cannot become whole. The first reason counts, and a whole body stays whole.
  mutating func fail(_ problem: Problem) {
    if isOpen { end = .failed(problem) }
  }

  /// Handles a switch of protocols: the bytes that the client sends from now on are the body.
  mutating func becomeTunnel() {
    if case .whole = end { end = .open }
  }
}

// The consumer's side.
extension RequestBodyIntake {
  var isWhole: Bool {
    if case .whole = end { true } else { false }
  }

  /// The whole body, if it is here and nothing of it was taken.
  var whole: ByteBuffer? { isWhole ? bytes : nil }

  var failure: Problem? {
    if case .failed(let problem) = end { problem } else { nil }
  }

  var isEmpty: Bool { bytes.readableBytes == 0 }

  enum CollectAction {
    case wait
    case use(ByteBuffer)
    case refuse(Problem)
  }

  /// Raises the bound of buffered bytes to `limit` and one more, which shows that the body is larger.
  mutating func beginCollecting(limit: Int) { highWater = limit + 1 }

  /// The next step of a consumer that wants the body whole.
  func collected(limit: Int) -> CollectAction {
    if let failure { return .refuse(failure) }
    guard bytes.readableBytes <= limit else { return .refuse(.requestTooLarge(limit: limit)) }
    return isWhole ? .use(bytes) : .wait
  }

  enum NextAction {
    case wait
    case use(ByteBuffer)
    case end
    case fail(Problem)
  }

  mutating func beginStreaming() { highWater = 256 << 10 }

  /// Takes out the bytes that are here; otherwise returns the next step of a consumer that wants the body in pieces.
  mutating func takeNext() -> NextAction {
    if bytes.readableBytes > 0 {
      let piece = bytes
      bytes = ByteBuffer()
      return .use(piece)
    }
    switch end {
    case .open: return .wait
    case .whole: return .end
    case .failed(let problem): return .fail(problem)
    }
  }

  /// Drops the bytes that are here: no consumer is left.
  mutating func removeAll() { bytes = ByteBuffer() }
}
