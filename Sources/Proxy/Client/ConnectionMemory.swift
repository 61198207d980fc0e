import NIOCore
import Telemetry

/// One connection's part of the memory for bodies: what of its requests and responses is held here at the moment.
///
/// All connections of all loops together hold `limits.body_memory`, one of them an eighth of that; a single body may be
/// larger, since nothing smaller than it is of any use. Confined to its loop.
final class ConnectionMemory {
  /// Changes are told to the other loops when they come to this much: a small body costs no atomic operation.
  private static let step = 4096
  /// Which part of all one connection may hold.
  private static let share = 8

  private let downstream: Downstream
  private var counters: Counters { downstream.environment.counters }
  /// In bytes, without what is shared or captured.
  private var held = 0
  private var captured = 0
  /// How much of it the other loops know.
  private var published = 0
  /// How many responses of this connection are out of each shared body, and how much that is.
  private var shared: [ObjectIdentifier: Int] = [:]
  private var sharedBytes = 0

  init(on downstream: Downstream) { self.downstream = downstream }

  private var limit: Int { downstream.limits.bodyMemory }
  /// The bytes up to which requests, and responses that wait, are let in.
  private var limitOfOthers: Int { CaptureShare.memory(forOthers: limit) }
  private var captures: CaptureShare { downstream.environment.captures }

  /// Whether a request may go on to be claimed or sent that holds so much itself.
  func hasRoom(beside own: Int) -> Bool {
    counters[.bodyBytes] - own < limitOfOthers
      && (held + sharedBytes == own || held + sharedBytes < limit / Self.share)
  }

  /// Takes memory for bytes that have arrived; false, and nothing taken, where there is none left.
  ///
  /// - Parameter own: what the body they belong to holds already.
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

  /// Takes memory that is needed whatever the limit says: for a refusal, or a little that is about to leave.
  func force(_ count: Int) {
    held += count
    publish()
  }

  func give(_ count: Int) {
    held -= count
    publish()
  }

  /// Tells the other loops of this much more, where it comes to a step; false where all have no room for it.
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
  /// Counts one response more that is read from a shared body; false where the connection holds too much.
  ///
  /// - Parameter own: what the response holds already.
  func enter(_ body: SharedBody, beside own: Int) -> Bool {
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
    let key = ObjectIdentifier(body)
    guard let count = shared[key] else { return }
    shared[key] = count > 1 ? count - 1 : nil
    if count == 1 { sharedBytes -= body.bytes.readableBytes }
  }
}
