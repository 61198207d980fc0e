import NIOCore

extension ChannelHandlerContext {
  /// Begins or stops reading from the peer.
  public func setReading(_ isWanted: Bool) {
    try? channel.syncOptions?.setOption(.autoRead, value: isWanted)
    if isWanted { read() }
  }

  /// Completes the read of an HTTP/2 connection that has ended within it, once all that it leads to is done.
  ///
  /// NIO's codec keeps the streams of a read until that is complete, and they keep the codec, the channel and what they
  /// have read. A socket that is closed within a read completes none, so that each such connection would leak.
  public func completeReadLater() {
    eventLoop.assumeIsolated().execute { self.fireChannelReadComplete() }
  }
}
