import Idempotency
import Wire

/// The connections of a pool that are taken up by requests of no protected route, and by those of each caller. Either
/// leaves some to the others.
///
/// A tunnel or an event stream keeps its connection for as long as its client wants, and one caller may send many slow
/// requests at once: others would find no connection.
struct ConnectionShares {
  private let limit: Int
  /// The number of connections that requests without protection may take up together. They leave one at least.
  let maxUnprotected: Int
  /// The number of requests without protection that are connecting or running.
  private var unprotected = 0 {
    didSet { invariant(unprotected >= 0, "an exchange gives up a connection that it never took up") }
  }
  /// The same of protected ones.
  private var protected = 0 {
    didSet { invariant(protected >= 0, "a protected exchange gives up a connection that it never took up") }
  }
  /// The same of each caller.
  private var callers: [Int: Int] = [:]

  init(of limit: Int) {
    self.limit = limit
    // Of a single connection nothing can be left.
    maxUnprotected = limit > 1 ? limit - max(1, limit / 4) : 1
    invariant(maxUnprotected < limit || limit <= 1, "requests without protection may take up all connections")
  }

  /// Whether a connection is left to the request by those of its kind.
  ///
  /// The last quarter of what requests without protection leave is for callers that have an eighth of it at most. A
  /// caller that has more would take each connection that becomes free, once others have their part.
  func leaveOne(to request: UpstreamRequest) -> Bool {
    guard request.isProtected else { return unprotected < maxUnprotected }
    // Of fewer than four connections a caller may take up all.
    guard limit >= 4, let caller = request.caller else { return true }
    let room = limit - unprotected
    return room - protected > max(1, room / 4) || callers[caller, default: 0] < max(1, room / 8)
  }

  /// Counts a request that takes up a connection (1), or no longer does (-1).
  mutating func change(_ request: UpstreamRequest, by change: Int) {
    invariant(
      change == 1 || change == -1, "a request takes up or gives up another number of connections than one")
    guard request.isProtected else { return unprotected += change }
    protected += change
    guard let caller = request.caller else { return }
    let count = callers[caller, default: 0] + change
    invariant(count >= 0, "a caller gives up a connection that it never took up")
    invariant(count <= protected, "a caller has more connections than all callers together")
    callers[caller] = count > 0 ? count : nil
  }
}

/// A number of connections for protected requests, and one for all others.
struct ByProtection {
  private var numbers = (protected: 0, other: 0)

  subscript(isProtected: Bool) -> Int {
    get { isProtected ? numbers.protected : numbers.other }
    set {
      invariant(newValue >= 0, "a connection is counted out twice among those of its kind")
      if isProtected { numbers.protected = newValue } else { numbers.other = newValue }
    }
  }
}
