/// Decides whether a shared connection is still alive, from what is read on it while its streams are open. Its clock
/// ticks once a second.
///
/// A network path that lost its state, or a load balancer that hangs, is silent. Without this check, every stream of
/// the connection, and every later one, would wait for its own time-out.
struct Liveness {
  enum TickAction: Equatable {
    case none
    /// No stream is open: no more ticks are needed until one is opened.
    case rest
    /// A PING is to be sent.
    case ping
    /// The backend has not responded to a PING: the connection is to be closed.
    case giveUp
  }

  /// The seconds of silence before the first PING, and before each further one while only acknowledgements arrive.
  /// Backends of gRPC close a connection on the third PING without cause within five minutes, while a stream may well
  /// be silent for hours.
  private static let pauses = [2, 10, 60, 330]
  /// The number of seconds that a PING may stay without any read. A backend that was frozen for less keeps its streams.
  private static let maxPingSeconds = 10

  private enum State {
    /// No ticks are needed. Followed by `listening`.
    case resting
    /// The clock ticks. Followed by `pinging` or `resting`.
    case listening
    /// The clock ticks, and nothing was read since the last PING. Followed by `listening`.
    case pinging
  }

  private var state = State.resting
  private var silence = 0
  /// The number of PINGs since the last frame of a stream.
  private var pings = 0
  private var lastRead = 0
  private var lastResponses = 0

  /// Whether nothing was read since the last PING. Meanwhile no stream is opened.
  var isPinging: Bool { state == .pinging }

  /// Records that a stream is opened. Returns whether the ticks begin with it.
  mutating func streamOpened() -> Bool {
    guard state == .resting else { return false }
    state = .listening
    return true
  }

  /// Handles the passing of a second.
  ///
  /// - Parameters:
  ///   - reads: The number of reads so far.
  ///   - responses: The number of frames so far that belonged to a stream.
  ///   - hasStreams: Whether a stream is open.
  mutating func ticked(reads: Int, responses: Int, hasStreams: Bool) -> TickAction {
    if reads != lastRead {
      lastRead = reads
      heard()
      if responses != lastResponses { pings = 0 }
      lastResponses = responses
      return hasStreams ? .none : rest()
    }
    guard hasStreams || isPinging else { return rest() }
    silence += 1
    if isPinging { return silence >= Self.maxPingSeconds ? .giveUp : .none }
    guard silence >= Self.pauses[min(pings, Self.pauses.count - 1)] else { return .none }
    willPing(reads: reads)
    return .ping
  }

  private mutating func rest() -> TickAction {
    state = .resting
    silence = 0
    return .rest
  }

  /// Records that a PING is sent.
  mutating func willPing(reads: Int) {
    lastRead = reads
    state = .pinging
    silence = 0
    pings += 1
  }

  /// Records that anything was read.
  mutating func heard() {
    if isPinging { state = .listening }
    silence = 0
  }
}
