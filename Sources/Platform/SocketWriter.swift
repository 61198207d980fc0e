import Glibc
import NIOCore

/// Writes directly to a connection's socket while no earlier bytes wait in NIO. NIO's list of pending writes would make
/// a replay a twelfth more expensive, although its bytes can leave at once.
///
/// Confined to its loop. All bytes of the connection must be written through it, and it must be flushed before the
/// connection is closed.
public final class SocketWriter: @unchecked Sendable {
  /// The size up to which bytes join a batch. More gain nothing by waiting.
  private static let maxBatchedBytes = 16 << 10

  /// The socket; `nil` if all bytes go through NIO.
  private let descriptor: NIOBSDSocket.Handle?
  /// The batch that small writes join; `nil` if each leaves by itself.
  private let batch: WriteBatch?
  /// The bytes that leave with the batch.
  private var batched: (bytes: ByteBuffer, context: ChannelHandlerContext)?
  /// The number of writes that NIO has not completed yet. No direct write may overtake them.
  private var waiting = 0
  /// Called when a pending write has completed or failed.
  public var didLeave: (() -> Void)?
  /// Called with the error of the socket by which a pending write has failed, before the connection becomes inactive.
  public var didFail: ((any Error) -> Void)?
  /// Called when not all bytes of a batch could leave.
  public var didStall: (() -> Void)?
  /// Whether this writer is passing bytes to NIO.
  fileprivate var isPassingOn = false

  /// Whether a part of what was written has not left, because the peer does not take it or NIO has not sent it yet.
  public var isWaiting: Bool { waiting > 0 }

  /// Whether bytes leave with the next batch.
  public var hasBatched: Bool { batched != nil }

  /// Creates a writer.
  ///
  /// - Parameters:
  ///   - isPlain: False if the bytes do not leave unchanged, as under TLS; all then go through NIO.
  ///   - batch: The batch that small writes join; `nil` if each is to leave by itself.
  public init(below channel: any Channel, isPlain: Bool, batch: WriteBatch? = nil) {
    let handlers = channel.pipeline.syncOperations
    descriptor =
      isPlain ? try? handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 } : nil
    self.batch = descriptor == nil ? nil : batch
    #if DEBUG
      if descriptor != nil { try? handlers.addHandler(SocketWriterFence(self), position: .first) }
    #endif
  }

  /// Whether the socket holds bytes from the peer that were not read yet. False if that cannot be determined.
  public func hasUnread(_ context: ChannelHandlerContext) -> Bool {
    guard context.channel.isActive else { return false }
    guard let descriptor else { return (context.channel as? any DescriptorlessChannel)?.arrival == .bytes }
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
  }

  /// The bytes that wait in NIO, and where they leave unchanged also those that the peer's machine has not acknowledged.
  public func unsentBytes(_ context: ChannelHandlerContext) -> Int {
    guard context.channel.isActive else { return 0 }
    let waiting = try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)
    var queued: Int32 = 0
    // TIOCOUTQ, which Linux also calls SIOCOUTQ.
    if let descriptor, ioctl(descriptor, UInt(TIOCOUTQ), &queued) != 0 { queued = 0 }
    return (waiting ?? 0) + Int(queued)
  }

  /// Writes as much as the kernel takes, now or with the batch, and passes the rest to NIO, which also handles a write
  /// error.
  ///
  /// - Returns: True if all has left or joined the batch. False if bytes were passed to NIO, which may have written
  ///   them within this call, after a call of `didLeave`: see `isWaiting`. `didStall` reports the same of a batch.
  @discardableResult
  public func write(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) -> Bool {
    context.eventLoop.assertInEventLoop()
    guard let batch, waiting == 0,
      bytes.readableBytes + (batched?.bytes.readableBytes ?? 0) <= Self.maxBatchedBytes
    else {
      flush()
      return send(bytes, context)
    }
    if batched == nil {
      batched = (bytes, context)
      batch.add(self)
    } else {
      batched?.bytes.writeImmutableBuffer(bytes)
    }
    return true
  }

  /// Sends what waits for the batch, unless the connection is closed.
  public func flush() {
    guard let (bytes, context) = batched.take(), context.channel.isActive else { return }
    if !send(bytes, context) { didStall?() }
  }

  private func send(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) -> Bool {
    var bytes = bytes
    // An active channel owns its descriptor.
    if waiting == 0, let descriptor, context.channel.isActive {
      let count = bytes.withUnsafeReadableBytes { bytes in
        Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
      }
      if count > 0 { bytes.moveReaderIndex(forwardBy: count) }
      if bytes.readableBytes == 0 { return true }
    }
    let written = context.eventLoop.makePromise(of: Void.self)
    waiting += 1
    written.futureResult.whenComplete { [self] result in
      waiting -= 1
      if case .failure(let error as IOError) = result { didFail?(error) }
      didLeave?()
    }
    let wasPassingOn = isPassingOn
    isPassingOn = true
    context.writeAndFlush(NIOAny(bytes), promise: written)
    isPassingOn = wasPassingOn
    return false
  }
}

#if DEBUG
  /// Stops the process on bytes that did not pass the connection's writer, because the writer's next bytes could
  /// overtake them. An empty write, which marks the end of those before it, may pass once the writer is flushed, and so
  /// may everything once the writer is gone: the connection was left to HTTP/2. In debug builds only.
  private final class SocketWriterFence: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private weak var writer: SocketWriter?

    init(_ writer: SocketWriter) { self.writer = writer }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      let mayPass = writer?.isPassingOn ?? true
      precondition(
        mayPass || unwrapOutboundIn(data).readableBytes == 0 && writer?.hasBatched != true,
        "SocketWriter: bytes were written past it")
      context.write(data, promise: promise)
    }
  }
#endif

/// The small writes of one turn of an event loop, which leave together once the turn's events have been handled, as in
/// Redis.
///
/// A write often wakes a peer that sleeps, at a cost of microseconds for the writer. Of peers that share a process only
/// the first is woken so, because the others' bytes arrive while that process is still at work. A replay to one of 32
/// connections thereby takes a tenth less CPU. A turn with one event delays nothing.
///
/// Confined to its loop, hence `@unchecked Sendable`.
public final class WriteBatch: @unchecked Sendable {
  /// The number of writers at which the batch does not wait for the end of the turn: it bounds the delay of the first
  /// to some hundred microseconds.
  private static let maxWriters = 64

  private let loop: any EventLoop
  private var writers: [SocketWriter] = []
  /// The memory of the batch before, which becomes that of the next one.
  private var spare: [SocketWriter] = []

  public init(loop: any EventLoop) {
    self.loop = loop
    writers.reserveCapacity(Self.maxWriters)
    spare.reserveCapacity(Self.maxWriters)
  }

  /// Adds a writer that has bytes to send when the turn ends.
  func add(_ writer: SocketWriter) {
    loop.assertInEventLoop()
    // Tasks run after the events of a turn.
    if writers.isEmpty { loop.execute { [self] in flush() } }
    writers.append(writer)
    if writers.count == Self.maxWriters { flush() }
  }

  private func flush() {
    // A writer that flushes may add others, so that this batch is flushed within itself.
    var batch = spare
    spare = []
    swap(&writers, &batch)
    for writer in batch { writer.flush() }
    batch.removeAll(keepingCapacity: true)
    spare = batch
  }
}
