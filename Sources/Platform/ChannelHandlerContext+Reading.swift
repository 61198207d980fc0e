import NIOCore

extension ChannelHandlerContext {
  /// Begins or stops reading from the peer.
  public func setReading(_ isWanted: Bool) {
    try? channel.syncOptions?.setOption(.autoRead, value: isWanted)
    if isWanted { read() }
  }
}
