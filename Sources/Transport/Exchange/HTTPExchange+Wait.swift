import Idempotency
import NIOCore
import Platform
import Wire

// The response, as `UpstreamExchange` promises it: it is awaited, and buffered until it is taken.
extension HTTPExchange {
  private enum Awaited {
    case head
    case body(upTo: Int)
    case piece
  }

  public func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead {
    context.loop.assertInEventLoop()
    let called = calledAt
    calledAt = nil
    try await wait(for: .head, within: span, since: called)
    guard let head = readyHead else { invariantBroken("waited for a head, and has none") }
    return head
  }

  public var readyHead: UpstreamHead? {
    head.map {
      UpstreamHead(head: $0.head, isDelimitedByClose: $0.framing == .untilClose && !endIsProven)
    }
  }

  public func whenReady(within span: Milliseconds, _ act: @escaping @Sendable () -> Void) {
    context.loop.assertInEventLoop()
    if calledAt == nil { calledAt = .now() }
    signal.whenSet(milliseconds: span.count) { [self] ending in
      // The signal is also set when the request's last byte was sent, from which the time limit counts. A limit of the
      // backend's silence is for the caller's next wait.
      let isOnlySent = ending == .signalled && head == nil && failure == nil && silence == nil
      if isOnlySent { whenReady(within: span, act) } else { act() }
    }
  }

  public func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  {
    context.loop.assertInEventLoop()
    covered = limit
    pauseAt = max(Self.collectedAhead, min(limit, .max - 1) + 1)
    updateReading()
    try await wait(for: .body(upTo: limit), within: span)
    invariant(isWhole || body.readableBytes > limit, "a part of a response counts as the whole")
    pauseAt = Self.highWater
    return body.readableBytes > limit ? .tooLarge : .whole(takeBody())
  }

  public func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? {
    context.loop.assertInEventLoop()
    covered = 0
    try await wait(for: .piece, within: span)
    guard body.readableBytes > 0 else {
      invariant(isWhole, "a response that goes on counts as ended")
      return nil
    }
    let piece = takeBody()
    updateReading()
    return piece
  }

  public func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) {
    context.loop.assertInEventLoop()
    covered = 0
    let piece = takeBody()
    updateReading()
    return (piece, isWhole && body.readableBytes == 0)
  }

  private func takeBody() -> ByteBuffer {
    let piece = body
    body = ByteBuffer()
    pace.didMove(piece.readableBytes, now: .now())
    return piece
  }

  private func isThere(_ awaited: Awaited) -> Bool {
    switch awaited {
    case .head: head != nil
    case .body(let limit): isWhole || body.readableBytes > limit
    case .piece: isWhole || body.readableBytes > 0
    }
  }

  /// Waits until a part of the response has arrived.
  ///
  /// The time-out counts from the request's last byte, or from the call if that was sent before. It also passes if the
  /// backend takes no part of the request for its whole duration.
  ///
  /// - Parameter earlier: The time of the call, if the part was awaited before.
  private func wait(
    for awaited: Awaited, within span: Milliseconds?, since earlier: NIODeadline? = nil
  ) async throws(UpstreamFailure) {
    if isThere(awaited) { return }
    var now = NIODeadline.now()
    let called = earlier ?? now
    var hasHadGrace = false
    while !isThere(awaited) {
      if let failure { throw failure }
      let rest = left(of: span, since: called, at: now)
      if rest.map({ $0 > 0 }) ?? true {
        _ = await signal.wait(milliseconds: rest)
      } else if let rest, rest < -Lateness.tolerance, !hasHadGrace {
        // The process stood still, and the response may have arrived unread.
        hasHadGrace = true
        _ = await signal.wait(milliseconds: Lateness.replyGrace)
      } else {
        if case .running(let connection) = stage { connection.timedOut() }
        throw .timedOut
      }
      if !isThere(awaited) { now = .now() }
    }
  }

  /// The time that is left of a wait, in milliseconds: of its span, and of the time for which the backend may send
  /// nothing. `nil` if neither is limited.
  private func left(of span: Milliseconds?, since called: NIODeadline, at now: NIODeadline) -> Int64? {
    guard let start = waitsSince(called) else { return span?.count ?? silence?.limit.count }
    let leftOfSpan = span.map { $0.count - Milliseconds(now - start).count }
    guard let silence else { return leftOfSpan }
    let left = silence.limit.count - Milliseconds(now - max(start, silence.since)).count
    return min(left, leftOfSpan ?? left)
  }

  /// The time since which the backend is awaited. `nil` while the exchange waits for the client, or for a connection,
  /// which has a time-out of its own.
  private func waitsSince(_ called: NIODeadline) -> NIODeadline? {
    if let sentAt { return max(sentAt, called) }
    guard gate.hasOpened, !pace.isStarving, case .running = stage else { return nil }
    return max(takenAt ?? called, called)
  }
}
