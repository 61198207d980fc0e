import Idempotency
import NIOCore
import Wire

/// The memory that one response holds until its client has taken it: bytes of its own, and maybe a recorded body that
/// other clients read too. Performs no I/O. Confined to the loop of its connection.
///
/// The memory of the request that is under way beside the response is passed in, since a connection that holds nothing
/// else may take a body of any size.
struct OutgoingMemory {
  /// A whole response up to this, in bytes, never meets the limits of memory: a refusal must reach its client.
  private static let smallBytes = 4 << 10

  private let memory: ConnectionMemory
  /// The body that is counted once for all clients of the loop that read it; `nil` while the response's own bytes are
  /// all that counts.
  private var shared: SharedBody?
  /// Whether the next piece of the response goes out although no memory is left, and those behind it wait for the
  /// client. True for a replay that has found room, and for an owner's response that is not kept, which no retry could
  /// get.
  var isAdmitted = false
  /// The bytes that are counted, without a shared body.
  private(set) var heldBytes = 0

  init(of memory: ConnectionMemory) { self.memory = memory }

  /// Whether a whole response of this size takes memory regardless of the limits.
  static func isSmall(_ count: Int) -> Bool { count <= smallBytes }

  /// Whether the bytes of the body are counted with the response's own.
  var countsBody: Bool { shared == nil }

  private var ownBytes: Int { heldBytes + (sharedBytes?.readableBytes ?? 0) }
}

// The bytes of the response's own.
extension OutgoingMemory {
  /// Takes memory for bytes that wait for the client; false, and nothing taken, if there is none.
  ///
  /// - Parameter request: The bytes that the request holds.
  mutating func take(_ count: Int, beside request: Int) -> Bool {
    if !memory.takeUnread(count, beside: ownBytes + request) {
      guard isAdmitted else { return false }
      memory.changeUnread(by: count)
    }
    heldBytes += count
    return true
  }

  /// Takes memory regardless of the limits, for a small response.
  mutating func force(_ count: Int) {
    heldBytes += count
    memory.changeUnread(by: count)
  }

  mutating func give(_ count: Int) {
    guard count > 0 else { return }
    heldBytes -= count
    invariant(heldBytes >= 0, "a response gives back more memory than it holds")
    memory.changeUnread(by: -count)
  }

  /// Counts the bytes that wait for the client now; false, and nothing changed, if there is no memory for more.
  ///
  /// - Parameter request: The bytes that the request holds.
  mutating func count(_ waiting: Int, beside request: Int) -> Bool {
    let change = waiting - heldBytes
    if change > 0, !Self.isSmall(waiting) { return take(change, beside: request) }
    if change > 0 { force(change) } else { give(-change) }
    return true
  }

  /// Gives back all memory: nothing waits for the client any more.
  mutating func drop() {
    leaveBody()
    give(heldBytes)
  }
}

// A recorded body, which other clients may read too.
extension OutgoingMemory {
  /// The shared body; `nil` if the response has none.
  var sharedBytes: ByteBuffer? { shared?.bytes }

  /// Reserves memory for a replay of this body; false if there is not enough.
  ///
  /// - Parameters:
  ///   - isShared: Whether the body is counted as one that other clients read too. `leaveBody` or `drop` must follow.
  ///   - request: The bytes that the request holds.
  mutating func admit(
    _ bytes: ByteBuffer, recordedAt: StoreInstant, isShared: Bool, beside request: Int
  ) -> Bool {
    if isShared {
      shared = memory.share(bytes, recordedAt: recordedAt, beside: ownBytes + request)
      guard shared != nil else { return false }
    } else {
      guard Self.isSmall(bytes.readableBytes) || memory.hasRoomForUnread(beside: ownBytes + request) else {
        return false
      }
    }
    isAdmitted = true
    return true
  }

  /// Leaves a shared body, of which nothing waits for this client any more.
  mutating func leaveBody() {
    if let shared { memory.leave(shared) }
    shared = nil
  }
}
