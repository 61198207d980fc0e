import Idempotency
import NIOCore
import Telemetry
import Wire

/// One connection's part of the memory for bodies: the bytes of its requests and responses that are held here now.
///
/// Requests, and responses that wait for their clients, are let in on all connections of all loops up to three quarters
/// of `limits.body_memory`; captured responses may take the last quarter, too (`CaptureShare`). Once such responses hold
/// a half, no replay begins and backends are not read ahead, so that slow readers leave room for new requests; the
/// response of a request that has run may still take what is there. One connection holds at most an eighth of the whole.
/// A single body may exceed that eighth, because a part of a body is useless. Confined to its loop.
final class ConnectionMemory {
  /// The divisor of all memory that gives one connection's part.
  private static let share = 8

  private let downstream: Downstream
  private var counters: Counters { downstream.environment.counters }
  /// The bytes that are held, without those that are shared.
  private var all = SteppedCount(of: .bodyBytes)
  /// The bytes of responses that wait for the client.
  private var unread = SteppedCount(of: .unreadBytes)
  /// The bytes of captured responses.
  private var captured = 0
  /// The number of this connection's responses that are read from each shared body.
  private var shared: [ObjectIdentifier: Int] = [:]
  private var sharedBytes = 0
  /// The bytes of `all` that wait for the client (`WaitingShares`).
  private var waiting = 0
  /// The bytes of `all` for the heads of requests that are under way.
  private var heads = 0
  /// The address of the connection's client; `nil` where it is no single client's.
  private let address: String?

  /// - Parameter peer: The connection's peer; `nil` where its share is its own.
  init(on downstream: Downstream, from peer: ClientPeer? = nil) {
    self.downstream = downstream
    address = peer?.address(unlessTrustedBy: downstream.configuration.trustedProxies)
  }

  private var limit: Int { downstream.limits.bodyMemory }
  /// The bytes up to which requests are let in.
  private var limitOfRequests: Int { CaptureShare.memory(forOthers: limit) }
  private var limitOfUnread: Int { CaptureShare.memory(forUnread: limit) }
  private var captures: CaptureShare { downstream.environment.captures }
  /// The bytes of which one connection may hold its part.
  private var held: Int { all.bytes - captured - waiting - heads + sharedBytes }

  /// Whether a request that holds `own` bytes itself may be claimed or sent.
  func hasRoom(beside own: Int) -> Bool {
    counters[.bodyBytes] - own < limitOfRequests && (held == own || held < limit / Self.share)
  }

  /// Whether a replay that will wait may begin.
  ///
  /// - Parameter own: The bytes that its request holds.
  func hasRoomForUnread(beside own: Int) -> Bool {
    hasRoom(beside: own) && counters[.unreadBytes] < limitOfUnread
  }

  /// Whether more of a response may be read from its backend while a part of it waits.
  var mayReadAhead: Bool { hasRoomForUnread(beside: 0) }

  /// Takes memory for bytes of a request that have arrived; false, and nothing taken, if there is none left.
  ///
  /// - Parameter own: The bytes that their body holds already.
  func take(_ count: Int, beside own: Int) -> Bool {
    guard held == own || held + count <= limit / Self.share else { return false }
    return all.add(count, upTo: limitOfRequests, counters)
  }

  func give(_ count: Int) {
    all.change(by: -count, counters)
    checkParts()
  }

  /// Stops the process if the parts of the memory come to more than the whole: one of them was given back as another.
  private func checkParts() {
    invariant(
      unread.bytes + captured + waiting + heads <= all.bytes, "a connection's memory is less than its parts")
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
    checkParts()
  }

  /// Reserves memory for a response that will be captured; false if there is none.
  func reserveCapture() -> Bool { captures.reserve(of: limit) }

  func giveReservation() { captures.giveReservation() }

  /// Takes memory for a captured response beyond its reservation; false if there is none.
  ///
  /// - Parameters:
  ///   - own: The bytes that the response has taken this way before.
  ///   - caller: The hash of the request's caller.
  func capture(_ count: Int, beside own: Int, caller: Int) -> Bool {
    let isWithinPart = captured == own || captured + count <= CaptureShare.part(of: limit)
    guard captures.grow(by: count, beside: own, caller: caller, isWithinPart: isWithinPart, of: limit) else {
      return false
    }
    captured += count
    all.change(by: count, counters)
    return true
  }

  func giveCaptured(_ count: Int, caller: Int) {
    captures.shrink(by: count, caller: caller)
    captured -= count
    invariant(captured >= 0, "a connection gives back more captured bytes than it holds")
    all.change(by: -count, counters)
    checkParts()
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

// The bytes that wait for the client.
extension ConnectionMemory {
  private var shares: WaitingShares { downstream.environment.waitingShares }

  /// The one in whose share the connection's bytes are.
  var client: WaitingShares.Client {
    address.map(WaitingShares.Client.address) ?? .connection(ObjectIdentifier(self))
  }

  /// Takes memory for bytes that wait for the client; false, and nothing taken, if there is none, or if its share is
  /// used up.
  func takeWaiting(_ count: Int) -> Bool {
    guard shares.take(.init(bytes: count), of: client, within: .init(downstream.limits)) else { return false }
    guard all.add(count, upTo: limitOfRequests, counters) else {
      shares.give(.init(bytes: count), of: client)
      return false
    }
    waiting += count
    return true
  }

  /// Takes memory for a response that waits for the client, beside its body; false if there is none. A connection's
  /// first one meets no limits: a refusal must reach its client.
  func takeUnreadStream(_ count: Int) -> Bool {
    guard waiting == 0 else { return takeWaiting(count) }
    shares.force(.init(bytes: count), of: client)
    all.change(by: count, counters)
    waiting += count
    return true
  }

  func giveWaiting(_ count: Int) {
    shares.give(.init(bytes: count), of: client)
    all.change(by: -count, counters)
    waiting -= count
    invariant(waiting >= 0, "a connection gives back more waiting bytes than it holds")
    checkParts()
  }

  /// Takes memory for the head of a request that is under way, regardless of the limits: it is here. A negative number
  /// gives it back.
  func changeHeads(by count: Int) {
    all.change(by: count, counters)
    heads += count
    invariant(heads >= 0, "a connection gives back more heads than it holds")
  }

  /// Counts a request whose body is not whole in the share of its client; false if that is used up. `leave` must follow.
  func enter(_ amount: WaitingShares.Amount, of client: WaitingShares.Client) -> Bool {
    shares.take(amount, of: client, within: .init(downstream.limits))
  }

  func leave(_ amount: WaitingShares.Amount, of client: WaitingShares.Client) {
    shares.give(amount, of: client)
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
    let bodies = downstream.sharedBodies
    guard
      let shared = bodies.enter(
        body, recordedAt: recordedAt, limit: limitOfRequests, limitOfUnread: limitOfUnread)
    else { return nil }
    guard enter(shared, beside: own) else {
      bodies.leave(shared)
      return nil
    }
    return shared
  }

  private func enter(_ body: SharedBody, beside own: Int) -> Bool {
    let key = ObjectIdentifier(body)
    if let count = shared[key] {
      shared[key] = count + 1
      return true
    }
    guard held == own || held + body.bytes.readableBytes <= limit / Self.share else { return false }
    shared[key] = 1
    sharedBytes += body.bytes.readableBytes
    return true
  }

  func leave(_ body: SharedBody) {
    downstream.sharedBodies.leave(body)
    let key = ObjectIdentifier(body)
    guard let count = shared[key] else { return }
    invariant(count > 0, "a shared body is kept that no response of the connection reads")
    shared[key] = count > 1 ? count - 1 : nil
    if count == 1 { sharedBytes -= body.bytes.readableBytes }
    invariant(sharedBytes >= 0, "a connection gives back more shared bytes than it holds")
  }
}
