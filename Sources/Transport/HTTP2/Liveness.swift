/// Decides whether a shared connection still lives, by what is heard of it while its streams are open. Asked once a
/// second.
///
/// A path that lost its state, or a balancer that hangs, says nothing: without this every stream of the connection would
/// wait for its own time-out, and every later one, too.
struct Liveness {
  enum TickAction: Equatable {
    case none
    /// Nothing is under way: no more ticks are needed until a stream is opened.
    case rest
    /// The backend is to be asked by PING.
    case ask
    /// The backend does not say a word: the connection is to be closed.
    case giveUp
  }

  /// How many seconds of silence come before the first PING, and between those that nothing but their acknowledgements
  /// follow. Backends of gRPC end a connection with the third one within five minutes that comes without cause, while a
  /// stream may well say nothing for hours.
  private static let pauses = [2, 10, 60, 330]
  /// The seconds for which a PING may stay without a word; a backend that was frozen for less keeps its streams.
  private static let patience = 10

  /// Whether a PING is under way since which nothing was heard: no stream is to be opened until then.
  private(set) var isAsking = false
  private var silence = 0
  /// The number of PINGs that nothing but acknowledgements followed.
  private var asked = 0
  private var lastRead = 0
  private var lastAnswer = 0

  /// A second has passed.
  ///
  /// - Parameters:
  ///   - reads: how often anything was read so far.
  ///   - answers: how often anything of a stream was.
  mutating func ticked(reads: Int, answers: Int, hasStreams: Bool) -> TickAction {
    if reads != lastRead {
      lastRead = reads
      heard()
      if answers != lastAnswer { asked = 0 }
      lastAnswer = answers
      return hasStreams ? .none : .rest
    }
    guard hasStreams || isAsking else {
      silence = 0
      return .rest
    }
    silence += 1
    if isAsking { return silence >= Self.patience ? .giveUp : .none }
    guard silence >= Self.pauses[min(asked, Self.pauses.count - 1)] else { return .none }
    ask(reads: reads)
    return .ask
  }

  /// A PING is sent.
  mutating func ask(reads: Int) {
    lastRead = reads
    isAsking = true
    silence = 0
    asked += 1
  }

  /// Anything was read.
  mutating func heard() {
    isAsking = false
    silence = 0
  }
}
