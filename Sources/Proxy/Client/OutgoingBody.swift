import Idempotency
import NIOCore
import Telemetry
import Wire

/// The part of a response's body that its client has not taken yet, and the bytes that follow it. Pure.
///
/// It waits here and goes to the socket piece by piece, since NIO would hold any number of bytes that it is given.
struct OutgoingBody {
  private var pieces: CircularBuffer<ByteBuffer> = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ bytes: ByteBuffer) {
    guard bytes.readableBytes > 0 else { return }
    count += bytes.readableBytes
    pieces.append(bytes)
  }

  /// The next bytes, at most `limit`; they share memory with what was appended.
  mutating func next(upTo limit: Int) -> ByteBuffer? {
    guard let first = pieces.first else {
      invariant(count == 0, "bytes of a response wait in no piece")
      return nil
    }
    let length = min(limit, first.readableBytes)
    count -= length
    invariant(count >= 0, "more of a response leaves than waits")
    guard length < first.readableBytes else { return pieces.removeFirst() }
    return pieces[pieces.startIndex].readSlice(length: length)
  }

  mutating func removeAll() {
    pieces.removeAll()
    count = 0
  }
}

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

/// The body of a recorded response that clients are reading, held once for all of them.
final class SharedBody {
  let bytes: ByteBuffer
  fileprivate let recordedAt: StoreInstant
  /// The numbers of responses that read it, by the connections of these.
  fileprivate var readers: [ObjectIdentifier: Int] = [:]

  fileprivate init(_ bytes: ByteBuffer, recordedAt: StoreInstant) {
    self.bytes = bytes
    self.recordedAt = recordedAt
  }

  /// The number of a connection's responses that read it.
  func readers(of connection: ObjectIdentifier) -> Int { readers[connection, default: 0] }
}

/// The recorded bodies that slow clients of one loop are reading. Confined to its loop.
final class SharedBodies {
  private struct Key: Hashable {
    let recordedAt: StoreInstant
    let length: Int
  }

  private let counters: Counters
  private var bodies: [Key: [SharedBody]] = [:]

  init(counters: Counters) { self.counters = counters }

  /// Adds a reader of a body. The readers of equal bytes share one buffer, that of the first. `leave` must follow.
  ///
  /// - Returns: `nil` if there is no memory for one more body.
  func enter(
    _ body: ByteBuffer, recordedAt: StoreInstant, of connection: ObjectIdentifier, within limits: MemoryLimits
  ) -> SharedBody? {
    let key = Key(recordedAt: recordedAt, length: body.readableBytes)
    if let shared = bodies[key]?.first(where: { $0.bytes == body }) {
      shared.readers[connection, default: 0] += 1
      return shared
    }
    let all = counters.change(.bodyBytes, by: key.length)
    let unread = counters.change(.unreadBytes, by: key.length)
    guard all <= limits.bodies, unread <= limits.unread else {
      giveBack(key.length)
      return nil
    }
    let shared = SharedBody(body, recordedAt: recordedAt)
    shared.readers[connection] = 1
    bodies[key, default: []].append(shared)
    return shared
  }

  func leave(_ body: SharedBody, of connection: ObjectIdentifier) {
    let readers = body.readers(of: connection) - 1
    invariant(readers >= 0, "a shared body is left by a connection that does not read it")
    body.readers[connection] = readers > 0 ? readers : nil
    guard body.readers.isEmpty else { return }
    let key = Key(recordedAt: body.recordedAt, length: body.bytes.readableBytes)
    giveBack(key.length)
    invariant(bodies[key] != nil, "a shared body is given back that is not kept")
    bodies[key]?.removeAll { $0 === body }
    if bodies[key]?.isEmpty == true { bodies[key] = nil }
  }

  private func giveBack(_ count: Int) {
    counters.change(.bodyBytes, by: -count)
    counters.change(.unreadBytes, by: -count)
  }
}
