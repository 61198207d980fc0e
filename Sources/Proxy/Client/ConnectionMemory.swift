import Idempotency
import NIOCore
import Synchronization
import Telemetry
import Wire

/// One connection's part of the memory for bodies: the bytes of its requests and responses that are held here now.
/// Confined to its loop.
final class ConnectionMemory {
  private let downstream: Downstream
  /// The address of the connection's client; `nil` where it is no single client's.
  private let address: String?
  /// The bytes that are held, without those that are shared.
  private var all = SteppedCount(of: .bodyBytes)
  /// The bytes of responses that wait for the client.
  private var unread = SteppedCount(of: .unreadBytes)
  /// The bytes that `MemoryLimits.connection` bounds: requests, and responses that wait, with the shared ones.
  private var bodies = 0
  /// The bytes of `all` that wait for the client at next to no cost to it.
  private var waiting = 0

  /// - Parameter peer: The connection's peer; `nil` where its part is its own.
  init(on downstream: Downstream, from peer: ClientPeer? = nil) {
    self.downstream = downstream
    address = peer?.address(unlessTrustedBy: downstream.configuration.trustedProxies)
  }

  /// The memory of all connections.
  var shared: BodyMemory { downstream.environment.bodyMemory }
  var limits: MemoryLimits { .init(downstream.limits) }
  private var counters: Counters { shared.counters }
  var id: ObjectIdentifier { ObjectIdentifier(self) }

  /// The one in whose part of the memory that waits the connection's bytes are.
  var client: MemoryHolder { address.map(MemoryHolder.address) ?? .connection(id) }

  /// Whether a request that holds `own` bytes itself may be claimed or sent.
  func hasRoom(beside own: Int) -> Bool {
    counters[.bodyBytes] - own < limits.bodies && (bodies == own || bodies < limits.connection)
  }

  /// Whether a replay that will wait may begin.
  ///
  /// - Parameter own: The bytes that its request holds.
  func hasRoomForUnread(beside own: Int) -> Bool {
    hasRoom(beside: own) && counters[.unreadBytes] < limits.unread
  }

  /// Whether more of a response may be read from its backend while a part of it waits.
  var mayReadAhead: Bool { hasRoomForUnread(beside: 0) }

  /// Whether the connection may hold `count` bytes more. A body may exceed its part if nothing else is there.
  private func mayHold(_ count: Int, beside own: Int) -> Bool {
    bodies == own || bodies + count <= limits.connection
  }

  /// Takes memory for bytes of a request that have arrived; false, and nothing taken, if there is none left.
  ///
  /// - Parameter own: The bytes that their body holds already.
  func take(_ count: Int, beside own: Int) -> Bool {
    guard mayHold(count, beside: own), all.add(count, upTo: limits.bodies, counters) else { return false }
    bodies += count
    return true
  }

  func give(_ count: Int) {
    all.change(by: -count, counters)
    changeBodies(by: -count)
  }

  private func changeBodies(by count: Int) {
    bodies += count
    invariant(bodies >= 0, "a connection gives back more bodies than it holds")
  }

  /// Takes memory for bytes of a response that wait for the client; false, and nothing taken, if there is none left.
  ///
  /// - Parameter own: The bytes that it and its request hold already.
  func takeUnread(_ count: Int, beside own: Int) -> Bool {
    guard take(count, beside: own) else { return false }
    unread.change(by: count, counters)
    return true
  }

  /// Gives back memory of a response, or takes it regardless of the limits: for a refusal, or for few bytes that are
  /// about to leave.
  func changeUnread(by count: Int) {
    all.change(by: count, counters)
    unread.change(by: count, counters)
    changeBodies(by: count)
  }

  /// Counts bytes that no bound of the connection is for: heads of requests under way, which are here already, and
  /// captured responses. A negative number gives them back.
  func changeOthers(by count: Int) { all.change(by: count, counters) }
}

// The bytes that wait for the client at next to no cost to it.
extension ConnectionMemory {
  /// Counts the bytes of a kind that wait now; false, and none counted any more, if there is no room for them.
  ///
  /// - Parameters:
  ///   - counted: The bytes of this kind that are counted so far. Its owner counts none in the end.
  ///   - isResponse: Whether it is a response, of which the connection's first one meets no limits: a refusal must reach
  ///     its client.
  @discardableResult
  func countWaiting(_ count: Int, insteadOf counted: inout Int, isResponse: Bool = false) -> Bool {
    if count < counted {
      giveWaiting(counted - count)
    } else if count > counted, !takeWaiting(count - counted, isAdmitted: isResponse && waiting == 0) {
      giveWaiting(counted)
      counted = 0
      return false
    }
    counted = count
    return true
  }

  private func takeWaiting(_ count: Int, isAdmitted: Bool) -> Bool {
    if isAdmitted {
      shared.waiting.force(count, of: client)
      all.change(by: count, counters)
      waiting += count
      return true
    }
    guard shared.waiting.take(count, of: client, within: limits.waiting) else { return false }
    guard all.add(count, upTo: limits.bodies, counters) else {
      shared.waiting.give(count, of: client)
      return false
    }
    waiting += count
    return true
  }

  private func giveWaiting(_ count: Int) {
    guard count > 0 else { return }
    shared.waiting.give(count, of: client)
    all.change(by: -count, counters)
    waiting -= count
    invariant(waiting >= 0, "a connection gives back more waiting bytes than it holds")
  }
}

// Bodies that several responses are read from.
extension ConnectionMemory {
  /// Counts one more response that is read from a recorded body. `leave` must follow.
  ///
  /// - Parameter own: The bytes that the response holds already.
  /// - Returns: The body that clients of this loop share; `nil` if there is no memory, or the connection holds too
  ///   much.
  func share(_ body: ByteBuffer, recordedAt: StoreInstant, beside own: Int) -> SharedBody? {
    let sharedBodies = downstream.sharedBodies
    guard let body = sharedBodies.enter(body, recordedAt: recordedAt, of: id, within: limits) else {
      return nil
    }
    guard body.readers(of: id) == 1 else { return body }
    guard mayHold(body.bytes.readableBytes, beside: own) else {
      sharedBodies.leave(body, of: id)
      return nil
    }
    bodies += body.bytes.readableBytes
    return body
  }

  func leave(_ body: SharedBody) {
    downstream.sharedBodies.leave(body, of: id)
    if body.readers(of: id) == 0 { changeBodies(by: -body.bytes.readableBytes) }
  }
}

/// A number of bytes that the other loops learn of in steps: a small body costs no atomic operation.
private struct SteppedCount {
  private static let step = 4096

  private(set) var bytes = 0
  private var published = 0
  private let gauge: Counters.Gauge

  init(of gauge: Counters.Gauge) { self.gauge = gauge }

  /// Adds bytes; false, and nothing added, if all connections would hold more than `limit`.
  mutating func add(_ count: Int, upTo limit: Int, _ counters: Counters) -> Bool {
    let growth = bytes + count - published
    if growth >= Self.step {
      guard counters.change(gauge, by: growth) <= limit else {
        counters.change(gauge, by: -growth)
        return false
      }
      published += growth
    }
    bytes += count
    return true
  }

  mutating func change(by count: Int, _ counters: Counters) {
    bytes += count
    invariant(bytes >= 0, "a connection gives back more memory than it holds")
    let change = bytes - published
    guard abs(change) >= Self.step || (bytes == 0 && change != 0) else { return }
    counters.change(gauge, by: change)
    published += change
  }
}

/// The parts of messages that one connection may have decoded in one turn of the event loop.
///
/// A chunk or a DATA frame of one byte costs about as much as one of 16 KiB, and a request costs more still: without a
/// bound one read of small parts would delay all other connections for as long as thousands of requests.
///
/// Each byte of a head is read several times, and HTTP/2 has the sender name thousands of them by one byte: heads are
/// charged by the bytes that they have when they are decoded.
struct DecodingBudget {
  /// The number of parts.
  private static let maxParts = 512
  /// The parts that one request counts for: the run of a request costs more than its decoding.
  static let partsOfRequest = 8
  /// The decoded bytes of a head or of trailers that count as one part.
  private static let bytesOfPart = 1 << 10

  private var left = maxParts

  var isOver: Bool { left <= 0 }

  /// Takes one part; false if none is left.
  mutating func take() -> Bool {
    guard left > 0 else { return false }
    left -= 1
    return true
  }

  /// Charges for the run of a request.
  mutating func chargeRequest() { left -= Self.partsOfRequest - 1 }

  /// Charges for the decoded bytes of a head, or of trailers.
  mutating func charge(headBytes: Int) { left -= headBytes / Self.bytesOfPart }

  /// Charges for parts that were decoded.
  mutating func charge(_ parts: Int) { left -= parts }
}

/// The one whose part of a budget it is.
enum MemoryHolder: Hashable {
  case address(String)
  /// A connection; for what waits one that is no single client's, such as a trusted proxy's or one of a Unix socket.
  case connection(ObjectIdentifier)
  /// A caller, by its hash.
  case caller(Int)
}

/// A number of bytes or of requests, of which each holder has a part, for all event loops.
final class HolderBudget: Sendable {
  /// The amounts that may be taken.
  struct Bounds {
    /// By all holders.
    let all: Int
    /// By all of them while one that holds more than little takes more.
    let beforeLittle: Int
    /// By one holder.
    let holder: Int
    /// By one holder that holds little.
    let little: Int
  }

  private let total = Atomic<Int>(0)
  private let parts = Mutex<[MemoryHolder: Int]>([:])

  /// The amount that is taken.
  var taken: Int { total.load(ordering: .relaxed) }

  /// Adds to the parts of holders; false, and nothing added, if that would exceed a bound. A body or a head is useless
  /// in part: the only one of its holders may be as large as the bound of all.
  ///
  /// - Parameter own: The amount that the same body or head has taken before.
  func take(_ count: Int, of holders: MemoryHolder..., beside own: Int = 0, within bounds: Bounds) -> Bool {
    invariant(count >= 0, "a holder takes less than nothing")
    return parts.withLock { parts in
      var holdLittle = true
      for holder in holders {
        let held = parts[holder, default: 0]
        guard held == own || held + count <= bounds.holder else { return false }
        holdLittle = holdLittle && (held == own || held + count <= bounds.little)
      }
      guard add(count, upTo: holdLittle ? bounds.all : bounds.beforeLittle) else { return false }
      for holder in holders { parts[holder, default: 0] += count }
      return true
    }
  }

  /// Adds to the part of a holder regardless of the bounds.
  func force(_ count: Int, of holder: MemoryHolder) {
    total.add(count, ordering: .relaxed)
    parts.withLock { $0[holder, default: 0] += count }
  }

  func give(_ count: Int, of holders: MemoryHolder...) {
    subtract(count)
    parts.withLock { parts in
      for holder in holders {
        let left = parts[holder, default: 0] - count
        invariant(left >= 0, "a holder gives back more than its part")
        parts[holder] = left > 0 ? left : nil
      }
    }
  }

  /// Adds an amount that is no holder's; false, and nothing added, if more than `limit` would be taken.
  func add(_ count: Int, upTo limit: Int) -> Bool {
    guard total.add(count, ordering: .relaxed).newValue > limit else { return true }
    total.subtract(count, ordering: .relaxed)
    return false
  }

  func subtract(_ count: Int) {
    let left = total.subtract(count, ordering: .relaxed).newValue
    invariant(left >= 0, "more is given back than was taken")
  }
}

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
