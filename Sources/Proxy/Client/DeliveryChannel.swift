import Glibc
import Idempotency
import NIOCore
import NIOSSL
import Telemetry
import Wire

/// The connection of a delivery's client: an HTTP/1.1 connection, or one HTTP/2 stream.
///
/// A delivery calls `respond` once, or `begin`, `write`…, `end`. It writes the response and returns the number of
/// bytes. After `respond`, `end` or `abort` the channel does not refer to the delivery any more.
protocol DeliveryChannel: AnyObject {
  /// The identity of the connection.
  var connection: ObjectIdentifier { get }
  /// Whether the client takes more now.
  var isWritable: Bool { get }
  /// Permits the next piece of a relayed response to be written even if no memory is left.
  func admitNextPiece()
  /// Reserves memory for a replay of this body; false if there is not enough. Call `respond` next.
  func admitReplay(_ body: ByteBuffer, of record: CompletedRecord) -> Bool
  /// Writes a whole response.
  func respond(with response: ClientResponse) -> Int
  /// Writes a response's head, and the first piece of its body.
  func begin(_ head: ClientResponseHead, with piece: ByteBuffer) -> Int
  func write(_ piece: ByteBuffer) -> Int
  /// Writes the end of a body, and its trailers if the framing has a place for them.
  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int
  /// Writes the interim response 100 (Continue).
  func sendContinue()
  /// Writes an interim response of the backend (1xx).
  func interim(_ head: ClientResponseHead)
  /// Writes a response of 101. From then on bytes pass unchanged, both ways.
  func switchProtocols(_ head: MessageHead, label: ResponseLabel?) -> Int
  /// Resumes the body, after it was held back.
  func resumeBody()
  /// Cuts the connection or the stream: the response that was begun cannot be completed.
  func abort()
}

/// The sizes of the reads from a client, as its bytes arrive.
///
/// A channel keeps its last buffer for as long as it lives. Those of large reads are not kept: after an upload an idle
/// connection would hold 64 KiB for nothing.
struct ClientReadSizes: RecvByteBufferAllocator {
  static let full = 64 << 10
  /// The largest buffer that is kept.
  private static let maxKept = 4 << 10

  private var sizes: AdaptiveRecvByteBufferAllocator

  /// - Parameter max: The largest read, in bytes.
  init(max: Int = full) {
    // Most requests fit in the minimum, which the allocator keeps in its cache of small blocks (up to 1032 bytes).
    sizes = AdaptiveRecvByteBufferAllocator(minimum: 512, initial: min(4 << 10, max), maximum: max)
  }

  func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { sizes.buffer(allocator: allocator) }

  /// The size of the next buffer if the channel may take the one that it keeps; `nil` if it has to make one.
  func nextBufferSize() -> Int? { sizes.nextBufferSize().flatMap { $0 <= Self.maxKept ? $0 : nil } }

  /// Returns whether the channel must not take the buffer that it keeps.
  mutating func record(actualReadBytes: Int) -> Bool {
    let grows = sizes.record(actualReadBytes: actualReadBytes)
    return grows || nextBufferSize() == nil
  }
}

extension ChannelHandlerContext {
  /// Ends a client's connection by a reset: the client must not take a cut response for a whole one, and the kernel must
  /// not keep for long what a client does not read.
  func reset() {
    if let socket = channel as? any SocketOptionProvider {
      _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }
    // Past TLS, which would end in order.
    let secure = try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
    (secure ?? self).close(promise: nil)
  }
}

extension Delivery {
  /// Whether the request belongs into the journal: it has a record, or had a key, was refused, or met a shadowed route.
  var isForJournal: Bool {
    guard environment.journal != nil else { return false }
    return recordID != nil || logEntry.outcome == .refused || logEntry.outcome == .ignored
      || logEntry.would != nil
  }

  /// Adds an event of the request to the journal.
  @inline(never)
  func note(_ event: JournalEntry.Event) {
    guard let journal = environment.journal else { return }
    if logEntry.client == nil { logEntry.client = peer.loggedAddress }
    if logEntry.method == nil { logEntry.method = request.head.loggedMethod }
    journal.add(event, logEntry, record: recordID)
  }
}
