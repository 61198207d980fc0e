import Glibc
import NIOSSL
import Platform

/// The paths of a listener's TLS files, all in PEM.
public struct TLSFiles: Hashable, Sendable {
  /// The server's certificate, followed by those that lead to its root.
  public var certificate: String
  public var key: String
  /// The root certificates for clients' certificates; `nil` if no certificate is requested.
  public var clientCA: String?
  /// The name of `clientCA` in the callers that it certifies; `nil` if they are known by their own names alone.
  public var clientCAName: String?

  public init(certificate: String, key: String, clientCA: String? = nil, clientCAName: String? = nil) {
    self.certificate = certificate
    self.key = key
    self.clientCA = clientCA
    self.clientCAName = clientCAName
  }
}

/// The reason why TLS cannot be used with these files.
public struct TLSFault: Error, Hashable, CustomStringConvertible {
  public enum File: String, Sendable { case certificate, key, ca, clientCA = "client_ca" }

  /// The setting whose file is at fault.
  public var file: File
  /// A description of the fault, without anything of the file's content.
  public var message: String

  public var description: String { "\(file.rawValue): \(message)" }
}

extension TLSFault {
  /// The faults of files that are each read alone, so that one does not hide another.
  ///
  /// - Parameters:
  ///   - certificate: The path of a certificate; `nil` if there is none.
  ///   - key: The path of a private key; `nil` if there is none.
  ///   - authority: The path of root certificates; `nil` if there are none.
  ///   - name: The setting that names the root certificates.
  public static func each(
    certificate: String?, key: String?, authority: String?, as name: File
  ) -> [TLSFault] {
    var faults: [TLSFault] = []
    func read(_ path: String?, _ body: (String) throws(TLSFault) -> Void) {
      guard let path else { return }
      do throws(TLSFault) { try body(path) } catch { faults.append(error) }
    }
    read(certificate) { path throws(TLSFault) in _ = try TLSFiles.certificates(at: path, .certificate) }
    read(key) { path throws(TLSFault) in _ = try TLSFiles.privateKey(at: path) }
    read(authority) { path throws(TLSFault) in _ = try TLSFiles.certificates(at: path, name) }
    return faults
  }
}

extension TLSFiles {
  /// The cipher suites for TLS 1.2, with forward secrecy, as HTTP/2 requires (RFC 9113, appendix A).
  private static let cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"

  /// Reads the files and creates the TLS context for connections.
  public func context() throws(TLSFault) -> NIOSSLContext {
    let chain = try Self.certificates(at: certificate, .certificate)
    let privateKey = try Self.privateKey(at: key)
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(privateKey))
    configuration.minimumTLSVersion = .tlsv12
    configuration.cipherSuites = Self.cipherSuites
    configuration.applicationProtocols = ["h2", "http/1.1"]
    if let clientCA {
      configuration.trustRoots = .certificates(try Self.certificates(at: clientCA, .clientCA))
      // Without a certificate a client is refused only on a route that requires one.
      configuration.certificateVerification = .optionalVerification
      configuration.sendCANameList = true
    }
    do {
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw TLSFault(file: .key, message: "does not belong to the certificate")
    }
  }

  /// The reason why clients refuse the certificate at `now`, in seconds since 1970; `nil` if its dates are none.
  public func doubt(at now: Int = WallClock.seconds()) -> String? {
    guard let own = (try? Self.certificates(at: certificate, .certificate))?.first else { return nil }
    if now >= own.notValidAfter { return "ended on \(Self.text(own.notValidAfter)): clients refuse it" }
    if now < own.notValidBefore {
      return "begins on \(Self.text(own.notValidBefore)): clients refuse it until then"
    }
    return nil
  }

  private static func text(_ second: time_t) -> String {
    var second = second
    var parts = tm()
    gmtime_r(&second, &parts)
    let padded = { (number: Int32) in number < 10 ? "0\(number)" : "\(number)" }
    return "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
  }

  static func privateKey(at path: String) throws(TLSFault) -> NIOSSLPrivateKey {
    try readable(path, .key)
    do {
      return try NIOSSLPrivateKey(file: path, format: .pem)
    } catch {
      throw TLSFault(file: .key, message: "holds no private key in PEM, or one with a passphrase")
    }
  }

  static func certificates(at path: String, _ file: TLSFault.File) throws(TLSFault) -> [NIOSSLCertificate] {
    try readable(path, file)
    guard let found = try? NIOSSLCertificate.fromPEMFile(path), !found.isEmpty else {
      throw TLSFault(file: file, message: "holds no certificate in PEM")
    }
    return found
  }

  private static func readable(_ path: String, _ file: TLSFault.File) throws(TLSFault) {
    guard FileStatus(readable: path) != nil else {
      let reason = SystemFile.fault(of: path)
      let fault = reason.isEmpty ? "does not exist" : "cannot be read\(reason)"
      throw TLSFault(file: file, message: "names \(path), which \(fault); give the path of a PEM file")
    }
  }
}
