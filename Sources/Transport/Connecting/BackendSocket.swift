import Glibc
import Idempotency
import NIOCore
import NIOTLS
import Platform
import Synchronization
import TLS

/// Direct access to a connection's socket, for facts that NIO learns only in its next turn, which may be too late.
///
/// Use it only while the channel is active, because the channel owns the descriptor.
struct BackendSocket {
  enum ReadState: Equatable {
    /// No unread bytes have arrived.
    case quiet
    /// Bytes have arrived that were not read, or a part of a TLS record that cannot be read yet.
    case unread
    /// The backend has closed the connection.
    case ended
  }

  /// The generation of the TLS files by which the connection was made; `nil` if it is not encrypted.
  let generation: Int?
  private let socket: Socket
  private let records: TLSRecords?

  /// Creates the access to a channel's socket.
  ///
  /// - Parameter records: The handler that follows the connection's TLS records; `nil` if it is not encrypted.
  init(below channel: any Channel, records: TLSRecords?, generation: Int? = nil) throws {
    socket = try Socket(below: channel)
    self.records = records
    self.generation = generation
  }

  var isEncrypted: Bool { records != nil }

  var readState: ReadState {
    switch socket.arrival {
    case .bytes: .unread
    case .end: .ended
    case .none: records?.isMidRecord == true ? .unread : .quiet
    }
  }

  /// Closes the connection at once. Under TLS, it bypasses the closing handshake, which would wait for the backend.
  ///
  /// - Parameter discardsUnsent: Whether the kernel drops what the backend has not taken yet, and resets the
  ///   connection. Otherwise a backend that stood still may read the request long after it was given up.
  func cut(_ context: ChannelHandlerContext, discardsUnsent: Bool) {
    if discardsUnsent, let channel = context.channel as? any SocketOptionProvider {
      _ = channel.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }
    if let records { records.cut() } else { context.close(promise: nil) }
  }

  /// Calls `act` after each read of an encrypted connection, even if it brought only TLS's own messages.
  func didReadEncrypted(_ act: @escaping () -> Void) { records?.didRead = act }
}

extension BackendSocket {
  /// The end of a connection at which its bytes arrive.
  private enum Socket {
    case descriptor(NIOBSDSocket.Handle)
    case channel(any DescriptorlessChannel)

    init(below channel: any Channel) throws {
      let handlers = channel.pipeline.syncOperations
      if let descriptor = try handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, { $0 }) {
        self = .descriptor(descriptor)
      } else if let channel = channel as? any DescriptorlessChannel {
        self = .channel(channel)
      } else {
        throw ChannelError.operationUnsupported
      }
    }

    var arrival: SocketArrival {
      switch self {
      case .channel(let channel): return channel.arrival
      case .descriptor(let descriptor):
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count > 0 { return .bytes }
        return count < 0 && errno == EAGAIN ? .none : .end
      }
    }
  }
}

/// The TLS clients of all backends, which the event loops share. Safe from any thread.
public final class BackendTLS: Sendable {
  private struct Key: Hashable {
    var files: ClientTLSFiles
    var protocols: [String]
  }

  /// The result of checking one client's files, if they have changed or cannot be used.
  public enum Renewal: Sendable {
    case renewed(ClientTLSFiles)
    /// The files cannot be used; the earlier ones stay in use.
    case failed(ClientTLSFiles, TLSFault)
  }

  private let clients = Mutex<[Key: ClientTLS]>([:])

  public init() {}

  /// The client of these files. Reads them if no other event loop has.
  func client(of files: ClientTLSFiles, protocols: [String]) throws(TLSFault) -> ClientTLS {
    let key = Key(files: files, protocols: protocols)
    return try clients.withLock { clients throws(TLSFault) in
      if let client = clients[key] { return client }
      let client = try ClientTLS(key.files, protocols: protocols)
      clients[key] = client
      return client
    }
  }

  /// Takes changed files into use. Connections that were made with the earlier ones take no further requests.
  public func renew() -> [Renewal] {
    let all = clients.withLock { clients in
      // A client that no pool uses belongs to an earlier configuration.
      for key in Array(clients.keys) {
        if isKnownUniquelyReferenced(&clients[key]) { clients[key] = nil }
      }
      return Array(clients.values)
    }
    return all.compactMap { client in
      do throws(TLSFault) {
        return try client.renewIfChanged() ? .renewed(client.files) : nil
      } catch {
        return .failed(client.files, error)
      }
    }
  }
}

/// A handler below TLS that follows the record boundaries in the backend's bytes.
///
/// It sees what the handlers above TLS do not: a session ticket, which TLS consumes silently, and an incomplete record,
/// which TLS holds back silently.
final class TLSRecords: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  /// The length of a record's header: type, version and length (RFC 8446, section 5.1).
  private static let headerBytes = 5

  /// Called after each read. Set by the connection above TLS.
  var didRead: (() -> Void)?
  private var context: ChannelHandlerContext?
  /// The number of bytes of the current record that are still to come.
  private var bodyLeft = 0
  /// The number of bytes of the current header that have arrived.
  private var headerRead = 0
  private var length = 0

  /// Whether a record has begun and not ended.
  var isMidRecord: Bool { bodyLeft > 0 || headerRead > 0 }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func cut() { context?.close(promise: nil) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    unwrapInboundIn(data).withUnsafeReadableBytes { take($0) }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.fireChannelReadComplete()
    didRead?()
  }

  func take(_ bytes: UnsafeRawBufferPointer) {
    var at = 0
    while at < bytes.count {
      if bodyLeft > 0 {
        let taken = min(bodyLeft, bytes.count - at)
        bodyLeft -= taken
        at += taken
        continue
      }
      if headerRead >= 3 { length = length << 8 | Int(bytes[at]) }
      headerRead += 1
      at += 1
      guard headerRead == Self.headerBytes else { continue }
      bodyLeft = length
      headerRead = 0
      length = 0
    }
  }
}

/// A handler that waits for the end of the TLS handshake and then adds the HTTP handler that the backend has agreed to.
/// Confined to its loop, hence `@unchecked Sendable`.
final class BackendHandshake: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer

  /// Adds the HTTP handler. Gets the protocol that ALPN has chosen.
  private let start: (any Channel, String?) throws -> Void
  private var error: (any Error)?
  private let end = OneShot()

  init(start: @escaping (any Channel, String?) throws -> Void) { self.start = start }

  /// Returns a future that succeeds once the HTTP handler is in the pipeline.
  func whenDone(on loop: any EventLoop) -> EventLoopFuture<Void> {
    loop.assertInEventLoop()
    return end.wait(on: loop)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.eventLoop.assertInEventLoop()
    if !end.isSet, case .handshakeCompleted(let choice)? = event as? TLSUserEvent {
      // At once, because the backend's first bytes may follow in the same read.
      let started = Result { try start(context.channel, choice) }
      end.set(started)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard !end.isSet else { return context.fireErrorCaught(error) }
    self.error = error
    context.close(promise: nil)
  }

  /// Handles the end of the connection. One that is cut as soon as it is made does not become inactive.
  func handlerRemoved(context: ChannelHandlerContext) { end.set(.failure(error ?? ChannelError.eof)) }
}
