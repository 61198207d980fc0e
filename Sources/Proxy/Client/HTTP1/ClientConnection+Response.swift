import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

// The response of the delivery under way.
extension ClientConnection: DeliveryChannel {
  /// The size of one write. NIO holds what the client does not take of it.
  private static var pieceBytes: Int { 64 << 10 }

  var connection: ObjectIdentifier { ObjectIdentifier(self) }

  var isWritable: Bool { outgoing.isEmpty && context?.channel.isWritable == true }

  func admitNextPiece() { outgoingMemory.isAdmitted = true }

  func admitReplay(_ body: ByteBuffer, of record: CompletedRecord) -> Bool {
    outgoingMemory.admit(
      body, recordedAt: record.recordedAt, isShared: body.readableBytes > Self.pieceBytes,
      beside: requestBytes)
  }

  func respond(with response: ClientResponse) -> Int {
    guard let delivery else { return 0 }
    let minorVersion = delivery.request.head.minorVersion
    invariant(response.hasStatedLength, "a response states another length than it has")
    let isClosing = responseBegins(to: delivery)
    guard response.body.readableBytes <= Self.pieceBytes || response.head.content == .none else {
      return respondInPieces(response, minorVersion: minorVersion, isClosing: isClosing)
    }
    let bytes = ResponseEncoder.whole(response, minorVersion: minorVersion, isClosing: isClosing)
    write(bytes: bytes)
    finish(delivery)
    return bytes.readableBytes
  }

  /// Writes a large response as its client takes it, without copying the body.
  private func respondInPieces(_ response: ClientResponse, minorVersion: UInt8, isClosing: Bool) -> Int {
    let framing = ResponseEncoder.Framing(
      response.head.content, hasTrailers: response.trailers.readableBytes > 0, minorVersion: minorVersion)
    outgoing.begin(framing)
    let head = ResponseEncoder.head(
      response.head, framing: framing, minorVersion: minorVersion, isClosing: isClosing, bodyCapacity: 0)
    let before = outgoing.count
    outgoing.append(head: head)
    outgoing.append(outgoingMemory.sharedBytes ?? response.body)
    outgoing.appendEnd(trailers: response.trailers)
    let count = outgoing.count - before
    machine.responseQueued()
    settleOutgoing()
    return count
  }

  func begin(_ head: ClientResponseHead, with piece: ByteBuffer) -> Int {
    guard let delivery else { return 0 }
    let minorVersion = delivery.request.head.minorVersion
    let framing = ResponseEncoder.Framing(head.content, minorVersion: minorVersion)
    outgoing.begin(framing)
    let isClosing = responseBegins(to: delivery, isDelimitedByClose: framing == .close)
    let isLarge = piece.readableBytes > Self.pieceBytes
    var bytes = ResponseEncoder.head(
      head, framing: framing, minorVersion: minorVersion, isClosing: isClosing,
      bodyCapacity: isLarge ? 0 : piece.readableBytes)
    if !isLarge { ResponseEncoder.writePiece(piece, framing: framing, to: &bytes) }
    write(bytes: bytes)
    return bytes.readableBytes + (isLarge ? writeInPieces(piece) : 0)
  }

  func write(_ piece: ByteBuffer) -> Int {
    guard outgoing.isEmpty, piece.readableBytes <= Self.pieceBytes else { return writeInPieces(piece) }
    let framing = outgoing.framing
    guard framing == .chunked else {
      if framing != .none { write(bytes: piece) }
      return piece.readableBytes
    }
    var bytes = ByteBufferAllocator().buffer(capacity: piece.readableBytes + 24)
    ResponseEncoder.writePiece(piece, framing: framing, to: &bytes)
    write(bytes: bytes)
    return bytes.readableBytes
  }

  private func writeInPieces(_ piece: ByteBuffer) -> Int {
    let before = outgoing.count
    outgoing.append(piece)
    let count = outgoing.count - before
    settleOutgoing()
    return count
  }

  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int {
    guard let delivery else { return 0 }
    guard outgoing.isEmpty, piece.readableBytes <= Self.pieceBytes else {
      return endInPieces(piece, trailers: trailers)
    }
    let framing = outgoing.framing
    var bytes = ByteBufferAllocator().buffer(capacity: piece.readableBytes + trailers.readableBytes + 32)
    ResponseEncoder.writePiece(piece, framing: framing, to: &bytes)
    if framing == .chunked { bytes.writeLastChunk(trailers: trailers) }
    if bytes.readableBytes > 0 { write(bytes: bytes) }
    finish(delivery)
    return bytes.readableBytes
  }

  private func endInPieces(_ piece: ByteBuffer, trailers: ByteBuffer) -> Int {
    let before = outgoing.count
    outgoing.append(piece)
    outgoing.appendEnd(trailers: trailers)
    let count = outgoing.count - before
    machine.responseQueued()
    settleOutgoing()
    return count
  }

  func sendContinue() {
    write(bytes: ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))
  }

  func interim(_ head: ClientResponseHead) {
    write(
      bytes: ResponseEncoder.head(head, framing: .none, minorVersion: 1, isClosing: false, bodyCapacity: 0))
  }

  func switchProtocols(_ head: MessageHead, label: ResponseLabel?) -> Int {
    guard let delivery else { return 0 }
    let hasInputEnded = machine.protocolsSwitch()
    outgoing.begin(.close)
    let bytes = ResponseEncoder.switching(head, label: label)
    write(bytes: bytes)
    let early = takeUndecoded()
    if early.readableBytes > 0 { delivery.received(early) }
    if hasInputEnded { delivery.bodyEnded() }
    return bytes.readableBytes
  }

  /// Whether the response's head must state that the connection closes.
  private func responseBegins(to delivery: Delivery, isDelimitedByClose: Bool = false) -> Bool {
    machine.responseBegins(
      isPersistent: delivery.request.keepAlive && !downstream.environment.isDraining,
      isDelimitedByClose: isDelimitedByClose)
  }
}

extension ClientConnection {
  /// Writes as much as the client takes now, counts the rest, and ends the exchange if that was all of it.
  func settleOutgoing() {
    writeOutgoing()
    account()
    finishIfWritten()
  }

  private func writeOutgoing() {
    isWriting = true
    while context?.channel.isWritable == true, let piece = outgoing.next(upTo: Self.pieceBytes) {
      write(bytes: piece)
    }
    isWriting = false
    if outgoing.isEmpty { outgoingMemory.leaveBody() }
  }

  private func finishIfWritten() {
    guard outgoing.isEmpty, machine.isResponseQueued, let delivery else { return }
    finish(delivery)
  }

  func write(bytes: ByteBuffer) {
    guard let context else { return }
    written += bytes.readableBytes
    guard writer?.write(bytes, context) == true else { return noteStalled() }
    extendDeadlineOfWriting()
  }

  /// Counts what the client does not take now, and gives it `write_timeout` to take a part of it.
  func noteStalled() {
    if writer?.isWaiting == true { account() }
    guard context != nil else { return }
    guard waitingInNIO > 0 else { return extendDeadlineOfWriting() }
    isStalled = true
    taken = written - waitingInNIO
    extendDeadline(by: downstream.limits.writeTimeout)
  }

  /// Counts what the client has taken. Once that is all, it may be idle for as long as any other.
  func didLeave() {
    if outgoingMemory.heldBytes > 0 { account() }
    guard isStalled, waitingInNIO == 0 else { return }
    extendDeadlineOfWriting()
  }

  private func extendDeadlineOfWriting() {
    isStalled = false
    extendDeadline(
      by: delivery?.isTunnel == true ? downstream.limits.tunnelTimeout : downstream.limits.idleTimeout)
  }
}

// The memory that a response holds until its client has taken it.
extension ClientConnection {
  private var requestBytes: Int { delivery?.memory.heldBytes ?? 0 }

  /// Counts the bytes that wait for the client now. A response that finds no memory is cut.
  func account() {
    let waiting = waitingInNIO + (outgoingMemory.countsBody ? outgoing.count : 0)
    if !outgoingMemory.count(waiting, beside: requestBytes) { cutWithoutMemory() }
  }

  /// Drops everything that waits for the client.
  func dropOutgoing() {
    outgoing.removeAll()
    outgoingMemory.drop()
  }

  private func cutWithoutMemory() {
    downstream.environment.counters.add(.slowReaders)
    cut()
  }
}

/// The response under way on an HTTP/1.1 connection: its framing, and the bytes that the client has not taken yet.
/// Pure.
struct OutgoingResponse {
  private(set) var framing = ResponseEncoder.Framing.none
  private var bytes = OutgoingBody()

  var isEmpty: Bool { bytes.isEmpty }
  var count: Int { bytes.count }

  mutating func begin(_ framing: ResponseEncoder.Framing) {
    invariant(bytes.isEmpty, "a response begins behind one that has not left")
    self.framing = framing
  }

  mutating func append(head: ByteBuffer) { bytes.append(head) }

  /// Appends a piece of the body in its framing, without copying it.
  mutating func append(_ piece: ByteBuffer) {
    guard piece.readableBytes > 0, framing != .none else { return }
    guard framing == .chunked else { return bytes.append(piece) }
    var start = ByteBufferAllocator().buffer(capacity: 16)
    start.writeChunkHeader(piece.readableBytes)
    var end = ByteBufferAllocator().buffer(capacity: 2)
    end.writeChunkEnd()
    bytes.append(start)
    bytes.append(piece)
    bytes.append(end)
  }

  mutating func appendEnd(trailers: ByteBuffer) {
    guard framing == .chunked else { return }
    var end = ByteBufferAllocator().buffer(capacity: trailers.readableBytes + 8)
    end.writeLastChunk(trailers: trailers)
    bytes.append(end)
  }

  /// Takes out the next bytes, at most `limit`.
  mutating func next(upTo limit: Int) -> ByteBuffer? { bytes.next(upTo: limit) }

  mutating func removeAll() { bytes.removeAll() }
}
