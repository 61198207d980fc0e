import CCurl
import Idempotency
import Loop
import NIOCore
import Wire

// What libcurl asks and brings, within its callbacks.
extension CurlExchange {
  enum Intake { case taken, pause, refuse }

  /// The connection stands: may the request be written?
  func maySend() -> Bool {
    guard gate.open(now: .now) else { return false }
    upstream.countSend()
    return true
  }

  func bring(line: UnsafeRawBufferPointer) -> Bool {
    let hadHead = answer.head != nil
    do throws(AnswerFault) { try answer.take(line: line) } catch { return refuse(error) }
    if let interim = answer.interim { pass(on: interim) }
    guard !hadHead, answer.head != nil else { return true }
    if case .length(let length) = answer.framing { body.reserveCapacity(min(length, Self.highWater)) }
    signal.set()
    return true
  }

  /// Not at once: what its receiver does might lead back into libcurl.
  private func pass(on interim: MessageHead) {
    guard let receiver = request.interim else { return }
    upstream.context.task { receiver.received(interim: interim) }
  }

  func bring(body piece: UnsafeRawBufferPointer) -> Intake {
    guard body.readableBytes < pauseAt else {
      isReadPaused = true
      return .pause
    }
    do throws(AnswerFault) { try answer.take(body: piece.count) } catch {
      _ = refuse(error)
      return .refuse
    }
    body.writeBytes(piece)
    signal.set()
    return .taken
  }

  /// How many bytes of the request's body were laid down, 0 at its end, `nil` where libcurl is to wait.
  func fetchBody(into room: UnsafeMutableRawBufferPointer) -> Int? {
    guard feed != nil, let action = feed?.supply(into: room) else { return 0 }
    switch action {
    case .supplied(let count, let readOn):
      if readOn { readOnFromClient() }
      return count
    case .end:
      return 0
    case .wait(let readOn):
      isSendPaused = true
      if readOn { readOnFromClient() }
      return nil
    }
  }

  /// The events that libcurl wants to hear of tell what it is doing.
  func libcurlWants(_ what: Int32, of socket: Int32) {
    wantsToWrite = what == CURL_POLL_OUT || what == CURL_POLL_INOUT
    let reads = what == CURL_POLL_IN || what == CURL_POLL_INOUT
    hasStoppedReading = answer.head != nil && !reads && !isReadPaused
    self.socket = socket
  }

  /// Lets the backend go on where nobody read for a while.
  func updateReading() {
    guard isReadPaused, body.readableBytes < pauseAt, case .running(let transfer) = stage else { return }
    isReadPaused = false
    transfer.easy.resume(stillPaused: isSendPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT)
    upstream.turn()
  }

  private func refuse(_ fault: AnswerFault) -> Bool {
    if failure == nil { failure = gate.failure(fault.reason) }
    return false
  }

  private func readOnFromClient() {
    guard case .streamed(let stream, _) = request.body else { return }
    upstream.context.task { await self.readPiece(of: stream) }
  }

  private func readPiece(of stream: any RequestBodyStream) async {
    do throws(UpstreamFailure) {
      while true {
        let piece = try await stream.next()
        guard case .running(let transfer) = stage else { return }
        switch feed?.offer(piece) {
        case .readOn: continue
        case .offered(let resume):
          if resume { resumeSending(transfer) }
        case .refuse(let reason):
          cut(.requestBody(reason))
        case nil: break
        }
        return
      }
    } catch {
      cut(error)
    }
  }

  private func resumeSending(_ transfer: CurlTransfer) {
    isSendPaused = false
    transfer.easy.resume(stillPaused: isReadPaused ? CURLPAUSE_RECV : CURLPAUSE_CONT)
    upstream.turn()
  }

  /// The client's body failed: the request is cut, unless its answer is there already.
  private func cut(_ failure: UpstreamFailure) {
    guard case .running = stage, !answer.isWhole else { return }
    fail(failure)
    upstream.turn()
  }
}
