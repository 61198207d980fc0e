import Glibc
import Idempotency
import NIOSSL
import Platform
import SwiftASN1
import Synchronization
import Wire
import X509

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

/// The one name or address that a server's certificate must have (RFC 9525). SwiftNIO would also accept the IP address
/// that the name resolved to, which its owner could pose by, and the common name (RFC 9110, section 4.3.4).
enum ServerIdentity: Equatable, Sendable {
  /// A host name in lower case, without the dot at its end.
  case name(String)
  case address(IPAddress)

  init(_ host: String) {
    if let address = IPAddress(host) {
      self = .address(address)
    } else {
      self = .name(Self.folded(host))
    }
  }

  func isProven(by certificate: NIOSSLCertificate) -> Bool {
    guard let bytes = try? certificate.toDERBytes(), let parsed = try? Certificate(derEncoded: bytes),
      let names = try? parsed.extensions.subjectAlternativeNames
    else { return false }
    return isAmong(names)
  }

  func isAmong(_ names: some Sequence<GeneralName>) -> Bool {
    names.contains { candidate in
      switch (self, candidate) {
      case (.name(let name), .dnsName(let pattern)): Self.matches(name, Self.folded(pattern))
      case (.address(let address), .ipAddress(let bytes)): IPAddress(packed: bytes.bytes) == address
      default: false
      }
    }
  }

  /// Whether the name is the pattern, or has its wildcard for the first label (RFC 9525, section 6.3).
  private static func matches(_ name: String, _ pattern: String) -> Bool {
    guard isHostName(name) else { return false }
    guard pattern.hasPrefix("*.") else { return name == pattern }
    guard let dot = name.utf8.firstIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return false }
    return name[dot...] == pattern.dropFirst()
  }

  /// Whether the text has no bytes but those of host names.
  private static func isHostName(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  private static func folded(_ name: String) -> String {
    let bytes = name.utf8.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 }
    return String(decoding: bytes.last == UInt8(ascii: ".") ? bytes.dropLast() : bytes[...], as: UTF8.self)
  }
}

struct ServerIdentityMismatch: Error, CustomStringConvertible {
  var description: String { "the server's certificate has not the name or address that it must have" }
}

/// The certificate that a listener uses, renewed from its files while connections come and go.
public final class ServerCertificate: Sendable {
  private struct State {
    var context: NIOSSLContext
    var stamps: [FileStatus?]
  }

  public let files: TLSFiles
  private let state: Mutex<State>

  public init(_ files: TLSFiles) throws(TLSFault) {
    self.files = files
    // Taken before the files are read, so that a change in between is noticed.
    let stamps = Self.stamps(of: files)
    state = Mutex(State(context: try files.context(), stamps: stamps))
  }

  /// The TLS context for new connections.
  public var context: NIOSSLContext { state.withLock { $0.context } }

  /// Reads the files again and uses their contents for new connections. On an error, the context in use stays the same.
  public func reload() throws(TLSFault) {
    let stamps = Self.stamps(of: files)
    state.withLock { $0.stamps = stamps }
    let context = try files.context()
    state.withLock { $0.context = context }
  }

  /// Reads the files again if they changed, for good or bad, since they were last checked.
  ///
  /// - Returns: True if they changed and were read.
  public func reloadIfChanged() throws(TLSFault) -> Bool {
    let stamps = Self.stamps(of: files)
    guard state.withLock({ $0.stamps != stamps }) else { return false }
    try reload()
    return true
  }

  private static func stamps(of files: TLSFiles) -> [FileStatus?] {
    [files.certificate, files.key, files.clientCA].map { $0.flatMap(FileStatus.init(readable:)) }
  }
}

extension CertificateIdentity {
  /// Reads the identity in a certificate whose signature has been checked; `nil` if it is not unambiguous.
  ///
  /// - Parameter authority: The name of the listener's authority; `nil` if it has none.
  public init?(_ certificate: NIOSSLCertificate, authority: String? = nil) {
    guard let bytes = try? certificate.toDERBytes(), let parsed = try? Certificate(derEncoded: bytes),
      let alternatives = try? parsed.extensions.subjectAlternativeNames ?? SubjectAlternativeNames()
    else { return nil }
    let names = Self.names(alternatives)
    // C code would take a NUL for the end of the name.
    guard names.allSatisfy({ !$0.utf8.contains(0) }) else { return nil }
    let subject = parsed.subject.description
    self.init(subject: subject.isEmpty ? nil : subject, names: names, authority: authority)
  }

  private static func names(_ all: SubjectAlternativeNames) -> [String] {
    var uris: [String] = []
    var hosts: [String] = []
    var mails: [String] = []
    for name in all {
      switch name {
      case .uniformResourceIdentifier(let uri): uris.append(uri)
      case .dnsName(let host): hosts.append(host)
      case .rfc822Name(let mail): mails.append(mail)
      default: break
      }
    }
    return names(uris: uris, hosts: hosts, mails: mails)
  }
}
