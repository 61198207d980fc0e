import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

// The memory of the request itself.
extension Delivery {
  var memory: ConnectionMemory { allowance.memory }

  /// Counts the memory of the head, once, until the run's end: the request was not over at its start.
  func countHead() {
    guard isRunning, !isHeadCounted else { return }
    isHeadCounted = true
    memory.changeHeads(by: headBytes)
  }

  /// Counts a request whose body is not whole in its client's share, until it is, or until the response begins; false
  /// if that is used up.
  func enterWaiting() -> Bool {
    timers.assertOnLoop()
    return bodyHasEnded || takeWaitingPlace()
  }

  /// Counts a request that waits for another one in its client's share, until `leaveWaiting`; false if that is used up.
  func takeWaitingPlace() -> Bool {
    timers.assertOnLoop()
    invariant(waitingClient == nil, "a request waits twice")
    let client = sharedClient
    guard memory.enter(waitingAmount, of: client) else { return false }
    waitingClient = client
    return true
  }

  /// The client that a trusted proxy states, or else the connection's.
  private var sharedClient: WaitingShares.Client {
    guard peer.isTrusted, let address = peer.caller.address else { return memory.client }
    return .address(address)
  }

  private var waitingAmount: WaitingShares.Amount { .init(bytes: headBytes, requests: 1) }

  func leaveWaiting() {
    guard let client = waitingClient else { return }
    memory.leave(waitingAmount, of: client)
    waitingClient = nil
  }

  /// Gives back a part of what is counted for the request.
  func giveBack(_ count: Int) {
    guard count > 0 else { return }
    memory.give(count)
    heldBytes -= count
    invariant(heldBytes >= 0, "a request gives back more memory than it holds")
  }

  /// Gives back all that is counted for the request and its response, at the end of its run.
  func giveBackAll() {
    leaveWaiting()
    if isHeadCounted { memory.changeHeads(by: -headBytes) }
    isHeadCounted = false
    giveBack(heldBytes)
    allowance.release()
  }
}

// The memory for the response, before the client is given any of it.
extension Delivery {
  /// Whether there is memory for a body and a response: without it nothing new is claimed or sent.
  var hasMemory: Bool { memory.hasRoom(beside: heldBytes) }

  /// Whether memory for the response is reserved.
  var hasReservation: Bool { allowance.isReserved }

  /// Takes memory for `count` bytes that the request holds beside its body, until `giveBackHeld` or its run's end;
  /// false if there is none.
  func hold(_ count: Int) -> Bool {
    timers.assertOnLoop()
    guard memory.take(count, beside: heldBytes) else { return false }
    heldBytes += count
    heldBesides += count
    return true
  }

  /// Gives back what `hold` has taken.
  func giveBackHeld() {
    giveBack(heldBesides)
    heldBesides = 0
  }

  /// Reserves memory for the response, once; false if there is none. Must precede the claim.
  func reserveCapture(for caller: Caller) -> Bool { allowance.reserve(for: caller) }

  /// Takes memory so that `count` bytes of a response may be captured in all; false if there is none.
  func mayCapture(_ count: Int) -> Bool { allowance.grow(to: count) }

  /// Keeps the memory for `count` captured bytes, and gives back the rest.
  func settleCapture(_ count: Int) { allowance.shrink(to: count) }

  /// Gives back the memory for captures: the response goes to the client, who is counted from now on, or was given up.
  func releaseCapture() { allowance.release() }
}

// The wait for memory for a response.
extension Delivery {
  /// The longest wait for room in the share of captures, in milliseconds: several captures end in that time.
  private static var maxCaptureWait: Int64 { 1000 }
  /// The time between two tries for room, in milliseconds.
  private static var capturePause: Int64 { 10 }

  /// As `mayCapture(_:)`, but waits up to a second for the end of other captures.
  func mayCapture(_ count: Int, within span: Milliseconds) async -> Bool {
    // The limit is random, so that one of several captures that wait for each other gives up first.
    let maxWait = Int64.random(in: Self.maxCaptureWait / 2...Self.maxCaptureWait)
    let end = NIODeadline.now() + .milliseconds(min(span.count / 2, maxWait))
    while !mayCapture(count) {
      guard NIODeadline.now() < end else { return false }
      _ = await Signal(timers: timers).wait(milliseconds: Self.capturePause)
    }
    return true
  }
}

extension Delivery: ResponseMemory {
  var mayReadAhead: Bool { memory.mayReadAhead }

  func waitingChanged(by bytes: Int) {
    timers.assertOnLoop()
    memory.changeUnread(by: bytes)
  }
}
