import Idempotency
import NIOCore
import NIOSSL
import Wire

/// The TLS client settings for one backend. Confined to its loop.
final class BackendTLS {
  /// The maximum age of a TLS context, after which changed certificate files take effect. Reading them for each
  /// connection would cost more than the handshake.
  private static let age = TimeAmount.minutes(10)

  private let configuration: TLSConfiguration
  private let settings: UpstreamSettings.TLS
  /// The server name that is sent to the backend and verified. `nil` for an IP address, which is verified as such but
  /// never sent as a name (RFC 6066, section 3).
  private let name: String?
  private var context: (made: NIODeadline, context: NIOSSLContext)?

  /// Creates the settings of a backend.
  ///
  /// - Parameter protocols: The protocols that are offered by ALPN.
  init(_ settings: UpstreamSettings.TLS, of address: ServerAddress, protocols: [String]) {
    self.settings = settings
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    configuration.applicationProtocols = protocols
    self.configuration = configuration
    var name = settings.serverName
    if name == nil, case .tcp(let host, _) = address { name = host }
    let isAddress = name.map { (try? SocketAddress(ipAddress: $0, port: 0)) != nil } ?? true
    self.name = isAddress ? nil : name
  }

  func handler() throws -> NIOSSLClientHandler {
    try NIOSSLClientHandler(context: try current(), serverHostname: name)
  }

  private func current() throws -> NIOSSLContext {
    let now = NIODeadline.now()
    if let context, now - context.made < Self.age { return context.context }
    do {
      let made = try make()
      context = (now, made)
      return made
    } catch {
      // The files may just be being replaced; the earlier context is still valid.
      guard let context else { throw error }
      return context.context
    }
  }

  private func make() throws -> NIOSSLContext {
    var configuration = configuration
    if let ca = settings.ca { configuration.trustRoots = .file(ca) }
    if let certificate = settings.certificate, let key = settings.key {
      configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) }
      configuration.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
    }
    return try NIOSSLContext(configuration: configuration)
  }
}
