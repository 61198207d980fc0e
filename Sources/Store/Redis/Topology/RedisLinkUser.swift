/// The user of a link, which is called on its loop alone.
protocol RedisLinkUser: AnyObject {
  /// Handles a new connection that is ready for commands.
  ///
  /// - Parameter isBack: Whether there was one before, which was lost.
  /// - Returns: The reason for which this Redis is refused; `nil` if it is accepted.
  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String?
  /// Handles the next reply, in the order of the commands.
  func linkReceived(_ reply: borrowing HiredisReply)
  /// Handles the end of a read: all replies that have arrived were passed on.
  func linkReadAll()
  /// Handles the imminent writing of all commands that were appended so far. A command that this call appends is the
  /// last one of the write.
  func linkWillWrite()
  /// Handles the writing of all commands that were appended so far.
  func linkWrote()
  /// Handles the loss of the connection, or a failed attempt to connect.
  func linkIsDown(_ reason: String)
}

extension RedisLinkUser {
  func linkWillWrite() {}
}
