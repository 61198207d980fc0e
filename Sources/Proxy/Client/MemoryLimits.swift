import Idempotency

/// All bounds on the memory for bodies (`limits.body_memory`), in bytes, and on requests that wait.
struct MemoryLimits {
  /// The bytes that each claim reserves for its response. Most responses are no larger.
  static let reservation = 8 << 10

  private let memory: Int
  private let maxInFlight: Int

  init(_ limits: LimitSettings) {
    memory = limits.bodyMemory
    maxInFlight = limits.maxInFlight
  }

  /// The bytes of requests, and of responses that wait for their clients. The rest is for captured responses alone.
  var bodies: Int { memory - memory / 4 }

  /// The bytes of responses that wait for their clients at which no further replay begins: slow readers leave room for
  /// new requests. The response of a request that has run may still take what is there.
  var unread: Int { memory / 2 }

  /// The bytes of one connection's requests and responses. A single body may exceed them.
  var connection: Int { memory / 8 }

  /// The bytes of captured responses, which connections and callers hold beyond the reservations. One that holds more
  /// than an eighth (or one larger response) leaves the second half to the others.
  var captured: HolderBudget.Bounds {
    .init(all: memory / 4, beforeLittle: memory / 8, holder: memory / 4, little: memory / 32)
  }

  /// The captured bytes at which nothing more is claimed, so that responses of granted claims find room to grow. With
  /// the defaults that is more than all requests in flight reserve: 4096 × 8 KiB = 32 MiB of 64 MiB.
  var reserved: Int { captured.all / 4 * 3 }

  /// The bytes of outcomes that wait for the store, however long. The other half stays free for new claims, which are
  /// still made while the store refuses only some writes.
  var outcomes: Int { captured.all / 2 }

  /// The bytes that wait at next to no cost to their client: ten connections of a balancer that is not known as one
  /// open a thousand streams at once. Half is for clients that hold little: a few strangers who take all that they may
  /// leave room for a request whose body comes in a packet of its own.
  var waiting: HolderBudget.Bounds {
    .init(all: memory / 4, beforeLittle: memory / 8, holder: memory / 16, little: memory / 1024)
  }

  /// The requests among these.
  var waitingRequests: HolderBudget.Bounds {
    let quarter = max(maxInFlight / 4, 1)
    return .init(
      all: max(maxInFlight / 2, 1), beforeLittle: quarter, holder: quarter, little: max(maxInFlight / 512, 1))
  }
}
