import Idempotency
import NIOCore
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
