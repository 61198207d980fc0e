import Idempotency
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
