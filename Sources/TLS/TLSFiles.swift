import NIOSSL

/// The files of a listener's TLS, all in PEM.
public struct TLSFiles: Hashable, Sendable {
  /// The server's certificate, and those that lead to its root.
  public var certificate: String
  public var key: String
  /// The roots of the clients' certificates; `nil`: clients are not asked for one.
  public var clientCA: String?

  public init(certificate: String, key: String, clientCA: String? = nil) {
    self.certificate = certificate
    self.key = key
    self.clientCA = clientCA
  }
}

/// Why TLS cannot be spoken with these files.
public struct TLSFault: Error, Hashable, CustomStringConvertible {
  public enum File: String, Sendable { case certificate, key, clientCA = "client_ca" }

  /// The member at fault.
  public var file: File
  /// Says what is wrong, and nothing of the file's content.
  public var message: String

  public var description: String { "\(file.rawValue): \(message)" }
}

extension TLSFiles {
  /// Authenticated encryption under keys that are forgotten: what HTTP/2 demands of TLS 1.2 (RFC 9113, appendix A).
  /// TLS 1.3 has no others.
  private static let cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"

  /// Reads the files and makes what connections are secured with.
  public func context() throws(TLSFault) -> NIOSSLContext {
    let chain = try certificates(at: certificate, .certificate)
    let privateKey: NIOSSLPrivateKey
    try Self.readable(key, .key)
    do {
      privateKey = try NIOSSLPrivateKey(file: key, format: .pem)
    } catch {
      throw TLSFault(file: .key, message: "holds no private key in PEM, or one with a passphrase")
    }
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(privateKey))
    configuration.minimumTLSVersion = .tlsv12
    configuration.cipherSuites = Self.cipherSuites
    configuration.applicationProtocols = ["h2", "http/1.1"]
    if let clientCA {
      configuration.trustRoots = .certificates(try certificates(at: clientCA, .clientCA))
      // Who has none is refused where a route asks for it; a bad one ends the handshake.
      configuration.certificateVerification = .optionalVerification
      configuration.sendCANameList = true
    }
    do {
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw TLSFault(file: .key, message: "does not belong to the certificate")
    }
  }

  private func certificates(at path: String, _ file: TLSFault.File) throws(TLSFault) -> [NIOSSLCertificate] {
    try Self.readable(path, file)
    guard let found = try? NIOSSLCertificate.fromPEMFile(path), !found.isEmpty else {
      throw TLSFault(file: file, message: "holds no certificate in PEM")
    }
    return found
  }

  private static func readable(_ path: String, _ file: TLSFault.File) throws(TLSFault) {
    guard FileStamp(path) != nil else {
      throw TLSFault(file: file, message: "cannot be read; give the path of a PEM file")
    }
  }
}
