import CCurl
import Glibc
import Idempotency
import Loop
import NIOCore

// From stage to stage. Called by the upstream outside of libcurl.
extension CurlExchange {
  var isWaiting: Bool {
    if case .waiting = stage { true } else { false }
  }

  /// All transfers are at work: waits as long as a connect may take.
  func wait() {
    let span = request.upstream.connectTimeout
    let timer = upstream.context.timers.start(milliseconds: span.count) {
      self.fail("no connection was free within \(span.count) ms")
    }
    stage = .waiting(timer)
    pool.enqueue(self)
  }

  func run(on transfer: CurlTransfer) {
    leaveStage()
    transfer.exchange = self
    transfer.prepare(request)
    stage = .running(transfer)
  }

  /// libcurl is done with the transfer.
  func end(_ code: CURLcode) {
    guard case .running(let transfer) = stage else { return }
    let reason = code == CURLE_OK ? "" : transfer.easy.reason(code)
    leaveStage()
    if answer.isWhole { return signal.set() }
    if failure == nil, code == CURLE_OK {
      do throws(AnswerFault) { try answer.finish() } catch { failure = gate.failure(error.reason) }
    } else if !retry(after: code) {
      // libcurl finds out that it cannot send in chunks to an HTTP/1.0 backend before it writes a byte.
      fail(code == CURLE_UPLOAD_FAILED ? .notSent(reason) : gate.failure(reason))
    }
    signal.set()
  }

  func fail(_ reason: String) { fail(gate.failure(reason)) }

  /// Ends the exchange; the first failure counts.
  func fail(_ failure: UpstreamFailure) {
    if self.failure == nil { self.failure = failure }
    leaveStage()
    signal.set()
  }

  func leaveStage() {
    let left = stage
    stage = .ended
    switch left {
    case .waiting(let timer), .backingOff(let timer): upstream.context.timers.stop(timer)
    case .running(let transfer): upstream.stop(transfer, of: pool)
    case .ended: break
    }
  }

  private func retry(after code: CURLcode) -> Bool {
    guard failure == nil, !gate.hasOpened else { return false }
    var random = SystemRandomNumberGenerator()
    guard code.mayPass, let delay = backoff.next(using: &random), gate.allowsRetry(after: delay, now: .now)
    else {
      return false
    }
    upstream.logRetry(of: request.upstream.name, after: code, in: delay)
    let timer = upstream.context.timers.start(milliseconds: delay.count) {
      self.stage = .ended
      self.upstream.start(self)
      self.upstream.turn()
    }
    stage = .backingOff(timer)
    return true
  }

  /// After a turn: sees whether the request is sent whole by now. True where there is nothing more to look for.
  func review() -> Bool {
    guard case .running(let transfer) = stage else { return true }
    defer { hasBytes = false }
    if hasStoppedReading { reviewStop(transfer) }
    guard gate.hasOpened, !wantsToWrite, feed?.isSupplied ?? true else { return false }
    if sentAt == nil {
      sentAt = .now()
      signal.set()
    }
    return true
  }

  /// Before libcurl reads for a request that is still being sent: looks whether there are bytes to read, which
  /// tells the last chunk from the connection's end where libcurl stops reading then.
  func lookAhead() { hasBytes = peek() > 0 }

  /// libcurl stopped reading while the request is still being sent. A chunked answer is whole then, unless it was
  /// the connection that ended. Under TLS that cannot be told: there the end is one of the bytes to read.
  private func reviewStop(_ transfer: CurlTransfer) {
    hasStoppedReading = false
    if isSendPaused {
      isSendPaused = false
      transfer.easy.resume(stillPaused: isReadPaused ? CURLPAUSE_RECV : CURLPAUSE_CONT)
    }
    guard request.upstream.tls == nil, answer.framing == .chunked, !answer.isWhole, hasBytes || isConnected
    else { return }
    guard (try? answer.finish()) != nil else { return }
    signal.set()
  }

  private var isConnected: Bool {
    let count = peek()
    return count > 0 || count < 0 && errno == EAGAIN
  }

  private func peek() -> Int {
    var byte: UInt8 = 0
    return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
  }
}

extension CURLcode {
  /// Whether a failure to connect may be gone a moment later.
  var mayPass: Bool {
    switch self {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR,
      CURLE_SEND_ERROR, CURLE_RECV_ERROR:
      true
    default: false
    }
  }
}

extension BootInstant {
  static var now: BootInstant { BootInstant(nanoseconds: bootTimeNanoseconds()) }
}
