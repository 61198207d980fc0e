import Idempotency
import NIOCore
import NIOSSL
import Platform
import Synchronization
import Wire

/// The TLS client of connections to one service, renewed from its files when they change. Safe from any thread.
public final class ClientTLS: Sendable {
  private struct State {
    var context: NIOSSLContext
    /// The files' stamps when they were last read.
    var stamps: [FileStatus?]
  }

  public let files: ClientTLSFiles
  private let protocols: [String]
  private let state: Mutex<State>
  private let renewals = Atomic(0)

  /// Reads the files. Unusable ones are reported before the first connection.
  public init(_ files: ClientTLSFiles, protocols: [String] = []) throws(TLSFault) {
    self.files = files
    self.protocols = protocols
    // Taken before the files are read, so that a change in between is noticed.
    let stamps = Self.stamps(of: files)
    state = Mutex(State(context: try files.context(protocols: protocols), stamps: stamps))
  }

  /// The number of times that renewed files were taken into use: connections of a lower number are by earlier files.
  public var generation: Int { renewals.load(ordering: .acquiring) }

  /// Returns the TLS handler of a new connection.
  ///
  /// - Parameter host: The host of the address, a name or an IP address; `nil` on a Unix socket.
  public func handler(for host: String?) throws -> NIOSSLClientHandler {
    guard let host = files.serverName ?? host else { throw ServerIdentityMismatch() }
    let identity = ServerIdentity(host)
    // An IP address is never sent as a name (RFC 6066, section 3).
    let name: String? = if case .name = identity { host } else { nil }
    // NIO's public hooks replace the verification of the chain, or come when data may have been sent.
    return try NIOSSLClientHandler._makeSSLClientHandler(
      context: state.withLock { $0.context }, serverHostname: name
    ) { certificate, channel in
      guard identity.isProven(by: certificate) else {
        return channel.eventLoop.makeFailedFuture(ServerIdentityMismatch())
      }
      return channel.eventLoop.makeSucceededVoidFuture()
    }
  }

  /// As `handler`, with the files as they are now, if these can be used.
  public func renewedHandler(for host: String?) throws -> NIOSSLClientHandler {
    _ = try? renewIfChanged()
    return try handler(for: host)
  }

  /// Reads the files again if they have changed. While they cannot be used, the earlier ones stay in use.
  ///
  /// - Returns: True if they were taken into use.
  @discardableResult
  public func renewIfChanged() throws(TLSFault) -> Bool {
    let stamps = Self.stamps(of: files)
    let hasChanged = state.withLock { state in
      defer { state.stamps = stamps }
      return state.stamps != stamps
    }
    guard hasChanged else { return false }
    let context = try files.context(protocols: protocols)
    state.withLock { $0.context = context }
    renewals.add(1, ordering: .releasing)
    return true
  }

  private static func stamps(of files: ClientTLSFiles) -> [FileStatus?] {
    [files.ca, files.certificate, files.key].map { $0.flatMap(FileStatus.init(readable:)) }
  }
}

extension ClientTLSFiles {
  /// Reads the files and creates the TLS context: TLS 1.2 or later, the server's certificate verified but for its name.
  public func context(protocols: [String] = []) throws(TLSFault) -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    configuration.applicationProtocols = protocols
    configuration.certificateVerification = .noHostnameVerification
    if let ca { configuration.trustRoots = .certificates(try TLSFiles.certificates(at: ca, .ca)) }
    if let certificate, let key {
      let chain = try TLSFiles.certificates(at: certificate, .certificate)
      configuration.certificateChain = chain.map { .certificate($0) }
      configuration.privateKey = .privateKey(try TLSFiles.privateKey(at: key))
    }
    do {
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw TLSFault(file: .key, message: "does not belong to the certificate")
    }
  }
}
