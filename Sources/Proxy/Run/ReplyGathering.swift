import Idempotency
import NIOCore
import Wire

/// The store's replies to several claims. Confined to the event loop on which they come, hence `@unchecked Sendable`.
final class ReplyGathering: @unchecked Sendable {
  private var replies: [ClaimReply?]
  private var missing: Int
  private let loop: any EventLoop
  private let onAll: ([ClaimReply]) -> Void

  init(count: Int, on loop: any EventLoop, onAll: @escaping ([ClaimReply]) -> Void) {
    invariant(count > 0, "a batch waits for the replies to no claims")
    replies = Array(repeating: nil, count: count)
    missing = count
    self.loop = loop
    self.onAll = onAll
  }

  func put(_ reply: ClaimReply, at place: Int) {
    loop.assertInEventLoop()
    invariant(missing > 0 && replies[place] == nil, "a claim of a batch gets a second reply")
    replies[place] = reply
    missing -= 1
    guard missing == 0 else { return }
    let all = replies.compactMap(\.self)
    invariant(all.count == replies.count, "a batch goes on without the reply to a claim")
    onAll(all)
  }
}
