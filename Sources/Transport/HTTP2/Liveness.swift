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

  /// Whether nothing was read since the last PING. Meanwhile no stream is opened.
  private(set) var isPinging = false
  private var silence = 0
  /// The number of PINGs since the last frame of a stream.
  private var pings = 0
  private var lastRead = 0
  private var lastResponses = 0

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
      return hasStreams ? .none : .rest
    }
    guard hasStreams || isPinging else {
      silence = 0
      return .rest
    }
    silence += 1
    if isPinging { return silence >= Self.maxPingSeconds ? .giveUp : .none }
    guard silence >= Self.pauses[min(pings, Self.pauses.count - 1)] else { return .none }
    willPing(reads: reads)
    return .ping
  }

  /// Records that a PING is sent.
  mutating func willPing(reads: Int) {
    lastRead = reads
    isPinging = true
    silence = 0
    pings += 1
  }

  /// Records that anything was read.
  mutating func heard() {
    isPinging = false
    silence = 0
  }
}
