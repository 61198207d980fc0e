/// The user of a link, which is called on its loop alone.
protocol RedisLinkUser: AnyObject {
  /// Returns the reason for which this Redis is refused, if it is.
  ///
  /// - Parameter isBack: Whether there was a connection before.
  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String?
  func linkReceived(_ reply: borrowing HiredisReply)
  func linkReadAll()
  /// All commands that were appended so far are about to be written. One that this call appends is the last of them.
  func linkWillWrite()
  func linkWrote()
  func linkIsDown(_ reason: String)
}

extension RedisLinkUser {
  func linkReadAll() {}
  func linkWillWrite() {}
  func linkWrote() {}
}
