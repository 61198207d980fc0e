import Glibc
import NIOCore
import Platform

/// A node's end of a connection, as NIO's channels of sockets behave: levels that trigger reads, an end of the peer's
/// bytes that is read whatever is wanted, writes that wait in a list.
///
/// Confined to its loop, hence `@unchecked Sendable`.
final class SimChannel: DescriptorlessChannel, SocketOptionProvider, @unchecked Sendable {
  private let loop: SimLoop
  private let end: End?
  let allocator = ByteBufferAllocator()
  let localAddress: SocketAddress?
  let remoteAddress: SocketAddress?
  private let allowsHalfClosure: Bool
  private let closed: EventLoopPromise<Void>
  nonisolated(unsafe) private var ownPipeline: ChannelPipeline!
  private(set) var isActive = false
  private(set) var isWritable = true
  private var isOpen = true
  private var autoRead = true
  private var isReadWanted = false
  private var isLooking = false
  private var hasReadEnd = false
  private var resetsAtClose = false
  private var endsOutputOnceWritten = false
  /// Called when the channel begins to read by itself; for a listener.
  var onAutoRead: (() -> Void)?
  private var writes: [(bytes: ByteBuffer, promise: EventLoopPromise<Void>?, isFlushed: Bool)] = []
  private var waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 32 << 10, high: 64 << 10)

  init(
    on loop: SimLoop, end: End?, local: SocketAddress? = nil, remote: SocketAddress? = nil,
    allowsHalfClosure: Bool = false
  ) {
    self.loop = loop
    self.end = end
    localAddress = local
    remoteAddress = remote
    self.allowsHalfClosure = allowsHalfClosure
    closed = loop.makePromise()
    ownPipeline = ChannelPipeline(channel: self)
  }

  var eventLoop: any EventLoop { loop }
  var pipeline: ChannelPipeline { ownPipeline }
  var closeFuture: EventLoopFuture<Void> { closed.futureResult }
  var parent: (any Channel)? { nil }
  var _channelCore: any ChannelCore { self }
  var syncOptions: (any NIOSynchronousChannelOptions)? { Options(channel: self) }

  var arrival: SocketArrival {
    guard isActive, let end, !end.isReset else { return .end }
    if end.hasBytes { return .bytes }
    return end.hasEnded ? .end : .none
  }

  /// Begins to exchange bytes: the handlers are there.
  ///
  /// - Parameter connected: Called before the handlers hear of it.
  func activate(_ connected: () -> Void = {}) {
    guard isOpen else { return }
    end?.owner = self
    isActive = true
    connected()
    guard isOpen else { return }
    pipeline.syncOperations.fireChannelRegistered()
    pipeline.syncOperations.fireChannelActive()
    readIfWanted()
    if let end, end.hasBytes || end.hasEnded || end.isReset { arrived(at: end) }
  }
}

// Bytes that arrive.
extension SimChannel: EndOwner {
  func arrived(at end: End) {
    guard !isLooking else { return }
    isLooking = true
    loop.look(at: self)
  }

  func becameWritable(_ end: End) {
    loop.execute { [self] in if isOpen { writeOut() } }
  }

  /// Reads what has arrived, as far as it is wanted.
  func lookAtSocket() {
    isLooking = false
    guard isOpen, let end else { return }
    if end.isReset {
      readAll(end)
      return fail(IOError(errnoCode: 104, reason: "read"))
    }
    if end.hasEnded, !hasReadEnd {
      readAll(end)
      return isOpen ? readEnd() : ()
    }
    guard isReadWanted, let bytes = end.read() else { return }
    isReadWanted = false
    pipeline.syncOperations.fireChannelRead(NIOAny(bytes))
    if isOpen { pipeline.syncOperations.fireChannelReadComplete() }
    readIfWanted()
    if isOpen, isReadWanted, end.hasBytes { arrived(at: end) }
  }

  private func readAll(_ end: End) {
    while isOpen, let bytes = end.read() {
      pipeline.syncOperations.fireChannelRead(NIOAny(bytes))
      if isOpen { pipeline.syncOperations.fireChannelReadComplete() }
    }
  }

  private func readEnd() {
    hasReadEnd = true
    guard allowsHalfClosure else {
      return close0(error: ChannelError.eof, mode: .all, promise: nil)
    }
    pipeline.syncOperations.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
  }

  private func fail(_ error: any Error) {
    guard isOpen else { return }
    pipeline.syncOperations.fireErrorCaught(error)
    close0(error: error, mode: .all, promise: nil)
  }

  private func readIfWanted() {
    if isOpen, isActive, autoRead { pipeline.syncOperations.read() }
  }
}

// Bytes that leave, and the end.
extension SimChannel: ChannelCore {
  func localAddress0() throws -> SocketAddress {
    guard let localAddress else { throw ChannelError.operationUnsupported }
    return localAddress
  }

  func remoteAddress0() throws -> SocketAddress {
    guard let remoteAddress else { throw ChannelError.operationUnsupported }
    return remoteAddress
  }

  func register0(promise: EventLoopPromise<Void>?) { promise?.succeed(()) }
  func bind0(to: SocketAddress, promise: EventLoopPromise<Void>?) { refuse(promise) }
  func connect0(to: SocketAddress, promise: EventLoopPromise<Void>?) { refuse(promise) }
  func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { refuse(promise) }
  func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) { refuse(promise) }
  func channelRead0(_ data: NIOAny) {}
  func errorCaught0(error: any Error) {}

  private func refuse(_ promise: EventLoopPromise<Void>?) {
    promise?.fail(ChannelError.operationUnsupported)
  }

  func read0() {
    guard isOpen, !isReadWanted else { return }
    isReadWanted = true
    if let end, end.hasBytes { arrived(at: end) }
  }

  func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard isOpen, !endsOutputOnceWritten else {
      promise?.fail(isOpen ? ChannelError.outputClosed : ChannelError.ioOnClosedChannel)
      return
    }
    writes.append((unwrapData(data, as: ByteBuffer.self), promise, false))
    changeWritability(waitingBytes <= waterMark.high && isWritable)
  }

  func flush0() {
    for index in writes.indices.reversed() {
      if writes[index].isFlushed { break }
      writes[index].isFlushed = true
    }
    writeOut()
  }

  var waitingBytes: Int { writes.reduce(0) { $0 + $1.bytes.readableBytes } }

  private func changeWritability(_ isNowWritable: Bool) {
    guard isNowWritable != isWritable else { return }
    isWritable = isNowWritable
    pipeline.syncOperations.fireChannelWritabilityChanged()
  }

  private func writeOut() {
    guard let end, isOpen, isActive else { return }
    while let first = writes.first, first.isFlushed {
      if end.isReset {
        readAll(end)
        return fail(IOError(errnoCode: 32, reason: "write"))
      }
      let count = end.send(first.bytes)
      if count < first.bytes.readableBytes {
        writes[0].bytes.moveReaderIndex(forwardBy: count)
        break
      }
      writes.removeFirst()
      first.promise?.succeed(())
      guard isOpen else { return }
    }
    if waitingBytes < waterMark.low { changeWritability(true) }
    if writes.isEmpty, endsOutputOnceWritten { end.shutDown() }
  }

  func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard isOpen else { return promise?.fail(ChannelError.alreadyClosed) ?? () }
    if mode == .output {
      endsOutputOnceWritten = true
      writeOut()
      promise?.succeed(())
      return
    }
    isOpen = false
    isActive = false
    if resetsAtClose { end?.reset() } else { end?.close() }
    let failed = writes
    writes.removeAll()
    for write in failed { write.promise?.fail(ChannelError.ioOnClosedChannel) }
    promise?.succeed(())
    pipeline.syncOperations.fireChannelInactive()
    pipeline.syncOperations.fireChannelUnregistered()
    loop.execute { [self] in
      removeHandlers(pipeline: pipeline)
      closed.succeed(())
    }
  }
}

// The options.
extension SimChannel {
  struct Options: NIOSynchronousChannelOptions {
    let channel: SimChannel

    func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) throws {
      channel.set(option, value)
    }

    func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
      guard let value = channel.value(of: option) as? Option.Value else {
        throw ChannelError.operationUnsupported
      }
      return value
    }
  }

  func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<
    Void
  > {
    set(option, value)
    return loop.makeSucceededVoidFuture()
  }

  func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
    guard let value = value(of: option) as? Option.Value else {
      return loop.makeFailedFuture(ChannelError.operationUnsupported)
    }
    return loop.makeSucceededFuture(value)
  }

  private func set<Option: ChannelOption>(_ option: Option, _ value: Option.Value) {
    switch (option, value) {
    case (is ChannelOptions.Types.AutoReadOption, let isWanted as Bool):
      autoRead = isWanted
      if isWanted { onAutoRead?() }
      if isWanted { readIfWanted() } else { isReadWanted = false }
    case (
      is ChannelOptions.Types.WriteBufferWaterMarkOption,
      let mark as ChannelOptions.Types.WriteBufferWaterMark
    ):
      waterMark = mark
    default: break
    }
  }

  private func value<Option: ChannelOption>(of option: Option) -> Any? {
    switch option {
    case is ChannelOptions.Types.AutoReadOption: autoRead
    case is ChannelOptions.Types.BufferedWritableBytesOption: waitingBytes
    case is ChannelOptions.Types.WriteBufferWaterMarkOption: waterMark
    default: nil
    }
  }

  private func setSocket(_ value: Any) -> EventLoopFuture<Void> {
    if let lingering = value as? linger {
      resetsAtClose = lingering.l_onoff != 0 && lingering.l_linger == 0
    }
    return loop.makeSucceededVoidFuture()
  }

  func unsafeSetSocketOption<Value: Sendable>(
    level: SocketOptionLevel, name: SocketOptionName, value: Value
  ) -> EventLoopFuture<Void> { setSocket(value) }

  func unsafeSetSocketOption<Value: Sendable>(
    level: NIOBSDSocket.OptionLevel, name: NIOBSDSocket.Option, value: Value
  ) -> EventLoopFuture<Void> { setSocket(value) }

  func unsafeGetSocketOption<Value: Sendable>(
    level: SocketOptionLevel, name: SocketOptionName
  ) -> EventLoopFuture<Value> { loop.makeFailedFuture(ChannelError.operationUnsupported) }

  func unsafeGetSocketOption<Value: Sendable>(
    level: NIOBSDSocket.OptionLevel, name: NIOBSDSocket.Option
  ) -> EventLoopFuture<Value> { loop.makeFailedFuture(ChannelError.operationUnsupported) }
}
