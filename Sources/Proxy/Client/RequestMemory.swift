import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// The memory that one request holds: its head, its body, its place among those that wait, and the room in which its
/// response is captured. Performs no I/O. Confined to the loop of its connection. Its owner must call `drop` in the end.
struct RequestMemory {
  let connection: ConnectionMemory
  /// The memory of the head, and of its stream, in bytes.
  private let headBytes: Int
  private var isHeadCounted = false
  /// The client in whose part the request is counted while it waits; `nil` while it does not.
  private var waitingClient: MemoryHolder?
  /// The bytes of the body, and of what was read with it.
  private(set) var heldBytes = 0
  /// The part of `heldBytes` that is not the body's.
  private var besides = 0
  /// The part of `heldBytes` that the backend's side was given last and may still hold.
  private var lent = 0
  /// The bytes that are reserved for the response, and those that its capture has taken beyond them.
  private var (reserved, captured) = (0, 0)
  private var caller: Caller?

  init(of connection: ConnectionMemory, headBytes: Int) {
    self.connection = connection
    self.headBytes = headBytes
  }

  private var shared: BodyMemory { connection.shared }

  /// Whether there is memory for a body and a response: without it nothing new is claimed or sent.
  var hasRoom: Bool { connection.hasRoom(beside: heldBytes) }

  /// Counts the memory of the head, once.
  mutating func countHead() {
    guard !isHeadCounted else { return }
    isHeadCounted = true
    connection.changeOthers(by: headBytes)
  }

  /// Gives back all that is counted for the request and its response.
  mutating func drop() {
    leaveWaiting()
    if isHeadCounted { connection.changeOthers(by: -headBytes) }
    isHeadCounted = false
    (besides, lent) = (0, 0)
    give(heldBytes)
    releaseCapture()
  }
}

// The body, and what is read with it.
extension RequestMemory {
  /// Takes memory for bytes of the body that have arrived; false if there is none.
  mutating func take(_ count: Int) -> Bool {
    guard connection.take(count, beside: heldBytes) else { return false }
    heldBytes += count
    return true
  }

  private mutating func give(_ count: Int) {
    guard count > 0 else { return }
    connection.give(count)
    heldBytes -= count
    invariant(heldBytes >= 0, "a request gives back more memory than it holds")
  }

  /// Takes memory for bytes that the request holds beside its body, until `giveBesides`; false if there is none.
  mutating func takeBesides(_ count: Int) -> Bool {
    guard take(count) else { return false }
    besides += count
    return true
  }

  mutating func giveBesides() {
    give(besides)
    besides = 0
  }

  /// Notes that the backend's side is given `count` bytes, and gives back those before: it has sent them.
  mutating func lend(_ count: Int) {
    give(lent)
    lent = count
  }
}

// The wait for the rest of the body, or for another request.
extension RequestMemory {
  /// Counts the request in the part of its client, until `leaveWaiting`; false if that is used up.
  mutating func enterWaiting(from peer: ClientPeer) -> Bool {
    invariant(waitingClient == nil, "a request waits twice")
    let stated = peer.isTrusted ? peer.caller.address : nil
    let client = stated.map(MemoryHolder.address) ?? connection.client
    guard shared.takeRequest(headBytes, of: client, within: connection.limits) else { return false }
    waitingClient = client
    return true
  }

  mutating func leaveWaiting() {
    guard let client = waitingClient else { return }
    shared.giveRequest(headBytes, of: client)
    waitingClient = nil
  }
}

// The capture of the response.
extension RequestMemory {
  var isReserved: Bool { reserved > 0 }

  /// Reserves memory for the response, once; false if there is none. Must precede the claim.
  mutating func reserve(for caller: Caller) -> Bool {
    guard reserved == 0 else { return true }
    let count = MemoryLimits.reservation
    guard shared.captured.add(count, upTo: connection.limits.reserved) else { return false }
    reserved = count
    self.caller = caller
    return true
  }

  /// Takes memory so that `count` bytes of the response may be captured in all; false if there is none.
  mutating func growCapture(to count: Int) -> Bool {
    let more = count - reserved - captured
    guard more > 0 else { return true }
    guard
      shared.captured.take(
        more, of: .connection(connection.id), holder, beside: captured, within: connection.limits.captured)
    else { return false }
    connection.changeOthers(by: more)
    captured += more
    return true
  }

  /// Keeps the memory for `count` captured bytes, and gives back the rest.
  mutating func shrinkCapture(to count: Int) {
    let left = max(count - reserved, 0)
    guard captured > left else { return }
    shared.captured.give(captured - left, of: .connection(connection.id), holder)
    connection.changeOthers(by: left - captured)
    captured = left
  }

  /// Gives back all: the response goes to the client, who is counted from now on, or was given up.
  mutating func releaseCapture() {
    shrinkCapture(to: 0)
    if reserved > 0 { shared.captured.subtract(reserved) }
    reserved = 0
  }

  /// Made when it is needed: most responses fit in the reservation.
  private var holder: MemoryHolder { .caller(caller?.hashValue ?? 0) }
}

/// The memory for bodies that all event loops share, within `MemoryLimits`.
///
/// Once a backend has run a request, a response that finds no room is lost to every retry. Room must therefore be
/// certain before the claim: uploads and unread responses cannot take the quarter that is for captured responses, and a
/// claim reserves a part of it. A response that outgrows its reservation takes more step by step, and waits a moment
/// where there is none: a capture lasts no longer than its backend sends and the store writes.
final class BodyMemory: Sendable {
  /// The gauges of all bytes, and of responses that wait for their clients.
  let counters: Counters
  /// The captured responses: their reservations, what they take beyond, and outcomes that wait for the store.
  let captured = HolderBudget()
  /// The outcomes among these.
  private let outcomes = HolderBudget()
  /// The bytes that wait at next to no cost to their client: heads and blocks of fields that are not whole, requests
  /// whose bodies are not, duplicates, and HTTP/2 streams whose responses nobody takes.
  let waiting = HolderBudget()
  /// The requests among these.
  let waitingRequests = HolderBudget()

  init(counters: Counters) { self.counters = counters }

  /// Takes memory for an outcome that waits for the store; false if there is none.
  func takeOutcome(_ count: Int, within limits: MemoryLimits) -> Bool {
    guard outcomes.add(count, upTo: limits.outcomes) else { return false }
    guard captured.add(count, upTo: limits.captured.all) else {
      outcomes.subtract(count)
      return false
    }
    counters.change(.bodyBytes, by: count)
    return true
  }

  /// Gives back the memory of an outcome that waits no more.
  func giveOutcome(_ count: Int) {
    outcomes.subtract(count)
    captured.subtract(count)
    counters.change(.bodyBytes, by: -count)
  }

  /// Takes memory for a request that waits: its head, and a place among those in flight. False if there is none.
  func takeRequest(_ count: Int, of client: MemoryHolder, within limits: MemoryLimits) -> Bool {
    guard waitingRequests.take(1, of: client, within: limits.waitingRequests) else { return false }
    guard waiting.take(count, of: client, within: limits.waiting) else {
      waitingRequests.give(1, of: client)
      return false
    }
    return true
  }

  func giveRequest(_ count: Int, of client: MemoryHolder) {
    waitingRequests.give(1, of: client)
    waiting.give(count, of: client)
  }
}

extension Delivery {
  /// Counts the memory of the head, once, until the run's end: the request was not over at its start.
  func countHead() {
    if isRunning { memory.countHead() }
  }

  /// The longest wait for room in the share of captures, in milliseconds: several captures end in that time.
  private static var maxCaptureWait: Int64 { 1000 }
  /// The time between two tries for room, in milliseconds.
  private static var capturePause: Int64 { 10 }

  /// Takes memory so that `count` bytes of a response may be captured in all, and waits up to a second for the end of
  /// other captures; false if there is none.
  func mayCapture(_ count: Int, within span: Milliseconds) async -> Bool {
    // The limit is random, so that one of several captures that wait for each other gives up first.
    let maxWait = Int64.random(in: Self.maxCaptureWait / 2...Self.maxCaptureWait)
    let end = NIODeadline.now() + .milliseconds(min(span.count / 2, maxWait))
    while !memory.growCapture(to: count) {
      guard NIODeadline.now() < end else { return false }
      _ = await Signal(timers: timers).wait(milliseconds: Self.capturePause)
    }
    return true
  }
}

extension Delivery: ResponseMemory {
  var mayReadAhead: Bool { memory.connection.mayReadAhead }

  func waitingChanged(by bytes: Int) {
    timers.assertOnLoop()
    memory.connection.changeUnread(by: bytes)
  }
}
