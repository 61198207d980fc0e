import Idempotency
import Loop
import NIOCore

/// What a call of an exchange's port waits for.
enum AwaitedAnswer {
  case head
  case body(upTo: Int)
  case piece
}

/// An exchange that can be waited for, whatever speaks to the backend.
protocol AwaitableExchange: AnyObject {
  /// Set whenever one of the following has changed.
  var signal: Signal { get }
  var hasHead: Bool { get }
  /// Whether every byte of the answer has come.
  var isWhole: Bool { get }
  /// How much of the body is here and was not taken yet.
  var waitingBytes: Int { get }
  /// Why there will be no more of the answer.
  var failure: UpstreamFailure? { get }
  /// When the request's last byte was handed to the kernel.
  var sentAt: NIODeadline? { get }
  /// Grows while the backend takes the request; `nil` where it is not the backend that is waited for.
  var uploadProgress: Int64? { get }
}

extension AwaitableExchange {
  private func isThere(_ awaited: AwaitedAnswer) -> Bool {
    switch awaited {
    case .head: hasHead
    case .body(let limit): isWhole || waitingBytes > limit
    case .piece: isWhole || waitingBytes > 0
    }
  }

  /// Waits; the span begins with the request's last byte, or with this call where that was sent before.
  func wait(for awaited: AwaitedAnswer, within span: Milliseconds?) async throws(UpstreamFailure) {
    if isThere(awaited) { return }
    var began = sentAt.map { _ in NIODeadline.now() }
    while !isThere(awaited) {
      if let failure { throw failure }
      guard let span else {
        _ = await signal.wait()
        continue
      }
      if began == nil { began = sentAt }
      if let began {
        let left = span.count - (NIODeadline.now() - began).nanoseconds / 1_000_000
        if left <= 0 { throw .timedOut }
        _ = await signal.wait(milliseconds: left)
      } else if await stalls(within: span), !isThere(awaited) {
        throw .timedOut
      }
    }
  }

  /// Whether the backend takes nothing of a request for a whole span. Waiting for the client does not count, nor
  /// does connecting, which has a time-out of its own.
  private func stalls(within span: Milliseconds) async -> Bool {
    let before = uploadProgress
    guard await signal.wait(milliseconds: span.count) == .timedOut else { return false }
    guard sentAt == nil, failure == nil, let now = uploadProgress else { return false }
    return now == before
  }
}
