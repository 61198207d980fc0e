import Idempotency
import NIOCore
import Telemetry

/// One connection's part of the memory for bodies: the bytes of its requests and responses that are held here now.
///
/// Requests, and responses that wait for their clients, are let in on all connections of all loops up to three quarters
/// of `limits.body_memory`; captured responses may take the last quarter, too (`CaptureShare`). One connection holds at
/// most an eighth of the whole. A single body may exceed that eighth, because a part of a body is useless. Confined to
/// its loop.
final class ConnectionMemory {
  /// The change, in bytes, from which the other loops are informed: a small body costs no atomic operation.
  private static let step = 4096
  /// The divisor of all memory that gives one connection's part.
  private static let share = 8

  private let downstream: Downstream
  private var counters: Counters { downstream.environment.counters }
  /// The bytes that are held, without those that are shared or captured.
  private var held = 0
  private var captured = 0
  /// The bytes of both that the other loops know of.
  private var published = 0
  /// The number of this connection's responses that are read from each shared body.
  private var shared: [ObjectIdentifier: Int] = [:]
  private var sharedBytes = 0

  init(on downstream: Downstream) { self.downstream = downstream }

  private var limit: Int { downstream.limits.bodyMemory }
  /// The bytes up to which requests, and responses that wait, are let in.
  private var limitOfOthers: Int { CaptureShare.memory(forOthers: limit) }
  private var captures: CaptureShare { downstream.environment.captures }

  /// Whether a request that holds `own` bytes itself may be claimed or sent.
  func hasRoom(beside own: Int) -> Bool {
    counters[.bodyBytes] - own < limitOfOthers
      && (held + sharedBytes == own || held + sharedBytes < limit / Self.share)
  }

  /// Whether more of a response may be read from its backend while a part of it waits.
  var mayReadAhead: Bool { counters[.bodyBytes] < limitOfOthers && held + sharedBytes < limit / Self.share }

  /// Takes memory for bytes that have arrived; false, and nothing taken, if there is none left.
  ///
  /// - Parameter own: The bytes that their body holds already.
  func take(_ count: Int, beside own: Int) -> Bool {
    guard held + sharedBytes == own || held + sharedBytes + count <= limit / Self.share else { return false }
    guard publish(more: count) else { return false }
    held += count
    return true
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
    publish()
    return true
  }

  func giveCaptured(_ count: Int, caller: Int) {
    captures.shrink(by: count, caller: caller)
    captured -= count
    publish()
  }

  /// Takes memory regardless of the limit: for a refusal, or for few bytes that are about to leave.
  func force(_ count: Int) {
    held += count
    publish()
  }

  func give(_ count: Int) {
    held -= count
    publish()
  }

  /// Informs the other loops of `count` more bytes, once they come to a step; false if there is no room for them.
  private func publish(more count: Int) -> Bool {
    let growth = held + captured + count - published
    guard growth >= Self.step else { return true }
    guard counters.change(.bodyBytes, by: growth) <= limitOfOthers else {
      counters.change(.bodyBytes, by: -growth)
      return false
    }
    published += growth
    return true
  }

  private func publish() {
    let change = held + captured - published
    guard abs(change) >= Self.step || (held + captured == 0 && change != 0) else { return }
    counters.change(.bodyBytes, by: change)
    published += change
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
    guard let shared = bodies.enter(body, recordedAt: recordedAt, limit: limitOfOthers) else { return nil }
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
    let all = held + sharedBytes
    guard all == own || all + body.bytes.readableBytes <= limit / Self.share else { return false }
    shared[key] = 1
    sharedBytes += body.bytes.readableBytes
    return true
  }

  func leave(_ body: SharedBody) {
    downstream.sharedBodies.leave(body)
    let key = ObjectIdentifier(body)
    guard let count = shared[key] else { return }
    shared[key] = count > 1 ? count - 1 : nil
    if count == 1 { sharedBytes -= body.bytes.readableBytes }
  }
}
