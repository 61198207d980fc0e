import Idempotency
import NIOCore
import NIOHPACK
import NIOHTTP2
import Platform
import Telemetry
import Wire

// The response of the stream's delivery.
extension ClientStream: DeliveryChannel {
  /// The size of one write, so that a client that reads slowly differs from one that does not read.
  private static var pieceBytes: Int { 32 << 10 }
  /// The bytes of a body that the codec holds at most. It serves its streams in turn, as long as each has some there.
  private static var codecBytes: Int { 64 << 10 }
  /// Recorded bodies above this are shared with the other clients that read them.
  private static var sharedAbove: Int { 16 << 10 }

  var connection: ObjectIdentifier { ObjectIdentifier(session) }

  var isWritable: Bool { outgoing.isEmpty && context?.channel.isWritable == true }

  /// Whether the client has not taken all of the response that was written.
  var hasUnread: Bool { unwritten > 0 || !outgoing.isEmpty }

  func admitNextPiece() { outgoingMemory.isAdmitted = true }

  func admitReplay(_ body: ByteBuffer, of record: CompletedRecord) -> Bool {
    guard machine.isOpen else { return true }
    return outgoingMemory.admit(
      body, recordedAt: record.recordedAt, isShared: body.readableBytes > Self.sharedAbove,
      beside: delivery?.memory.heldBytes ?? 0)
  }

  func respond(with response: ClientResponse) -> Int {
    invariant(response.hasStatedLength, "a response states another length than it has")
    let head = HPACKHeaders(response.head)
    let hasContent = response.head.content != .none
    let trailers = hasContent ? HPACKHeaders(lines: response.trailers) : HPACKHeaders([])
    let count = hasContent ? response.body.readableBytes : 0
    write(head, isEnd: count == 0 && trailers.isEmpty && !machine.isMalformed)
    machine.responseCompleted()
    if count > 0 { queue(response.body) }
    conclude(with: trailers, isDue: count == 0 && !trailers.isEmpty)
    return head.byteCount + count + trailers.byteCount
  }

  func begin(_ head: ClientResponseHead, with piece: ByteBuffer) -> Int {
    let fields = HPACKHeaders(head)
    write(fields, isEnd: false)
    _ = write(piece)
    flush()
    return fields.byteCount + piece.readableBytes
  }

  func write(_ piece: ByteBuffer) -> Int {
    guard piece.readableBytes > 0, hold(piece.readableBytes) else { return 0 }
    outgoing.append(piece)
    pump()
    return piece.readableBytes
  }

  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int {
    let trailers = HPACKHeaders(lines: trailers)
    machine.responseCompleted()
    if piece.readableBytes > 0, hold(piece.readableBytes) { outgoing.append(piece) }
    // An end of its own is an empty frame, which costs nine bytes.
    conclude(with: trailers, isDue: outgoing.isEmpty)
    return piece.readableBytes + trailers.byteCount
  }

  func sendContinue() {
    write([":status": "100"], isEnd: false)
    flush()
  }

  func interim(_ head: ClientResponseHead) {
    write(HPACKHeaders(head), isEnd: false)
    flush()
  }

  func switchProtocols(_ head: MessageHead, label: ResponseLabel?) -> Int {
    invariantBroken("protocols switched, and HTTP/2 has no Upgrade to ask for it")
  }

  func abort() {
    delivery = nil
    reset(machine.isMalformed ? .protocolError : .internalError)
  }
}

extension ClientStream {
  /// The codec splits no head, and would end the connection for a long one, with all streams. A client that repeats the
  /// request by HTTP/1.1, as the reset demands, gets the recorded response (RFC 9113, section 7).
  private func write(_ fields: HPACKHeaders, isEnd: Bool) {
    guard fields.fitsFrame else { return reset(.http11Required) }
    write(.headers(.init(headers: fields, endStream: isEnd)))
  }

  private func write(_ payload: HTTP2Frame.FramePayload, holding count: Int = 0, of bytes: Int = 0) {
    guard let context, machine.isOpen else { return outgoingMemory.give(count) }
    unwritten += 1
    unwrittenBytes += bytes
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { [self] in hasLeft($0, bytes, holding: count) }
    context.write(wrapOutboundOut(payload), promise: promise)
  }

  private func flush() {
    context?.flush()
    guard hasUnread else { return }
    if timer == nil { startTimer() }
    guard unreadMemory == 0, !isUnreadNoted else { return }
    isUnreadNoted = true
    session.noteUnread(self)
  }

  /// Gives the codec as much as the client takes now.
  private func pump() {
    guard !outgoing.isEmpty else { return }
    while unwrittenBytes < Self.codecBytes, let piece = outgoing.next(upTo: Self.pieceBytes) {
      let isLast = machine.isResponseComplete && outgoing.isEmpty
      let isEnd = isLast && trailers.isEmpty && !machine.isMalformed
      write(
        .data(.init(data: .byteBuffer(piece), endStream: isEnd)),
        holding: outgoingMemory.countsBody ? piece.readableBytes : 0, of: piece.readableBytes)
      if isLast, !trailers.isEmpty { write(trailers, isEnd: true) }
    }
    flush()
  }

  /// Writes the rest of a complete response.
  ///
  /// - Parameter isDue: Whether an end of its own is due: no bytes of the body are left that would end the stream.
  private func conclude(with trailers: HPACKHeaders, isDue: Bool) {
    invariant(machine.isResponseComplete, "a response ends while more of it may come")
    delivery = nil
    self.trailers = trailers
    releaseSlot()
    if !isDue {
      pump()
    } else if !trailers.isEmpty {
      write(trailers, isEnd: true)
    } else {
      write(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: !machine.isMalformed)))
    }
    flush()
    resetIfDue()
  }

  /// - Parameters:
  ///   - bytes: The number of bytes of a body in the write.
  ///   - count: The memory that it held.
  private func hasLeft(_ result: Result<Void, any Error>, _ bytes: Int, holding count: Int) {
    outgoingMemory.give(count)
    if case .failure = result { dropOutgoing() }
    unwritten -= 1
    unwrittenBytes -= bytes
    invariant(unwritten >= 0 && unwrittenBytes >= 0, "a frame of a response leaves twice")
    if bytes > 0, timer != nil { progressedAt = .now() }
    if !outgoing.isEmpty {
      pump()
      if isWritable { delivery?.becameWritable() }
    }
    guard unwritten == 0, outgoing.isEmpty else { return }
    stopTimer()
    outgoingMemory.leaveBody()
    releaseUnread()
    resetIfDue()
  }

  /// A reset must wait until the response has left: it drops what has not.
  private func resetIfDue() {
    guard unwritten == 0, outgoing.isEmpty else { return }
    switch machine.didWriteAll() {
    case .nothing: break
    case .resetMalformed: reset(.protocolError)
    case .stopUpload: reset(.noError)
    }
  }

  func reset(_ code: HTTP2ErrorCode) {
    machine.close()
    dropOutgoing()
    context?.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
  }
}

// The memory that a response holds until its client has taken it.
extension ClientStream {
  /// Queues the body of a whole response. A response that finds no memory is reset.
  private func queue(_ body: ByteBuffer) {
    let count = body.readableBytes
    guard machine.isOpen else { return }
    if let shared = outgoingMemory.sharedBytes {
      outgoing.append(shared)
    } else if OutgoingMemory.isSmall(count) {
      outgoingMemory.force(count)
      outgoing.append(body)
    } else if hold(count) {
      outgoing.append(body)
    }
  }

  /// Takes memory for bytes that wait for the client. If there is none, resets the stream and returns false.
  private func hold(_ count: Int) -> Bool {
    guard machine.isOpen else { return false }
    guard outgoingMemory.take(count, beside: delivery?.memory.heldBytes ?? 0) else {
      resetWithoutMemory()
      return false
    }
    return true
  }

  private func resetWithoutMemory() {
    downstream.environment.counters.add(.slowReaders)
    reset(.enhanceYourCalm)
  }

  /// Counts the stream, once its response turns out to wait for the client. Without memory it is reset.
  func countUnread() {
    isUnreadNoted = false
    guard hasUnread, machine.isOpen, context != nil else { return }
    let isCounted = session.memory.countWaiting(Self.weight, insteadOf: &unreadMemory, isResponse: true)
    if !isCounted { resetWithoutMemory() }
  }

  func releaseUnread() { session.memory.countWaiting(0, insteadOf: &unreadMemory) }

  /// Drops what the codec was not given yet. The memory for the rest is given back as it leaves.
  func dropOutgoing() {
    if outgoingMemory.countsBody { outgoingMemory.give(outgoing.count) }
    outgoing.removeAll()
    outgoingMemory.leaveBody()
  }
}

// The client's time to take its response.
extension ClientStream {
  private func startTimer() {
    progressedAt = .now()
    startTimer(in: downstream.limits.writeTimeout.count)
  }

  private func startTimer(in milliseconds: Int64) {
    timer = downstream.context.timers.start(milliseconds: milliseconds) { [weak self] in
      self?.timerFired()
    }
  }

  func stopTimer() {
    if let timer { downstream.context.timers.stop(timer) }
    timer = nil
  }

  /// Resets the stream of a client that takes nothing of its body, and cuts the connection if nothing leaves it at all.
  private func timerFired() {
    timer = nil
    guard let context, unwritten > 0 || !outgoing.isEmpty else { return }
    let end = progressedAt + .milliseconds(downstream.limits.writeTimeout.count)
    let left = (end - .now()).nanoseconds
    guard left <= 0 else { return startTimer(in: left / 1_000_000 + 1) }
    downstream.environment.counters.add(.slowReaders)
    if context.channel.parent?.isWritable == false { return session.cut() }
    reset(.cancel)
  }
}
