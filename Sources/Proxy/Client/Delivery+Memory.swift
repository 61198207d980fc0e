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
    memory.changeOthers(by: headBytes)
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
    guard memory.shared.takeRequest(headBytes, of: client, within: memory.limits) else { return false }
    waitingClient = client
    return true
  }

  /// The client that a trusted proxy states, or else the connection's.
  private var sharedClient: MemoryHolder {
    guard peer.isTrusted, let address = peer.caller.address else { return memory.client }
    return .address(address)
  }

  func leaveWaiting() {
    guard let client = waitingClient else { return }
    memory.shared.giveRequest(headBytes, of: client)
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
    if isHeadCounted { memory.changeOthers(by: -headBytes) }
    isHeadCounted = false
    giveBack(heldBytes)
    allowance.release()
  }
}

// The memory for the response, before the client is given any of it.
extension Delivery {
  /// Whether there is memory for a body and a response: without it nothing new is claimed or sent.
  var hasMemory: Bool { memory.hasRoom(beside: heldBytes) }

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
}

// The wait for memory for a response.
extension Delivery {
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
    while !allowance.grow(to: count) {
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
