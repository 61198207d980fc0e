import NIOCore
import NIOSSL
import Platform
import Synchronization

/// The TLS client of connections to one service, renewed from its files when they change. Safe from any thread.
public final class ClientTLS: Sendable {
  private struct State {
    var context: NIOSSLContext
    /// The files' stamps when they were last read.
    var stamps: [FileStatus?]
  }

  public let files: ClientTLSFiles
  private let state: Mutex<State>

  /// Reads the files, so that unusable ones are reported before the first connection.
  public init(_ files: ClientTLSFiles) throws(TLSFault) {
    self.files = files
    let stamps = Self.stamps(of: files)
    state = Mutex(State(context: try files.context(), stamps: stamps))
  }

  /// Returns the TLS handler of a new connection, which uses the files as they are now. While they cannot be used, for
  /// example because they are being replaced, the earlier ones stay in use.
  ///
  /// - Parameter host: The host of the address, a name or an IP address; `nil` on a Unix socket.
  public func handler(for host: String?) throws -> NIOSSLClientHandler {
    try NIOSSLClientHandler(context: current(), serverHostname: Self.name(files.serverName ?? host))
  }

  /// The name to send and to verify. `nil` for an IP address, which is verified as the peer's, but never sent as a name
  /// (RFC 6066, section 3).
  private static func name(_ host: String?) -> String? {
    guard let host, (try? SocketAddress(ipAddress: host, port: 0)) == nil else { return nil }
    return host
  }

  private func current() -> NIOSSLContext {
    let stamps = Self.stamps(of: files)
    if let context = state.withLock({ $0.stamps == stamps ? $0.context : nil }) { return context }
    // A pair that is replaced file by file does not fit for a moment; its next change is read again.
    let renewed = try? files.context()
    return state.withLock { state in
      if let renewed {
        state.context = renewed
        state.stamps = stamps
      }
      return state.context
    }
  }

  private static func stamps(of files: ClientTLSFiles) -> [FileStatus?] {
    [files.ca, files.certificate, files.key].map { $0.flatMap(FileStatus.init(readable:)) }
  }
}

extension ClientTLSFiles {
  /// Reads the files and creates the TLS context for connections: TLS 1.2 or later, with the server's certificate and
  /// name verified.
  func context() throws(TLSFault) -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
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
