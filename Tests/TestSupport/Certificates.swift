import Foundation

/// A certificate authority of a test's own, and what it signs, made by `openssl`.
package final class Certificates: Sendable {
  /// A certificate and its key, each a file.
  package struct Pair: Sendable {
    package let certificate: String
    package let key: String
  }

  private let directory = TemporaryDirectory()

  /// The authority's own certificate.
  package var authority: String { directory.file("ca.pem") }

  /// The authority as a server: signed by nobody else.
  package var itself: Pair { Pair(certificate: authority, key: directory.file("ca.key")) }

  /// - Parameter subject: the authority's own.
  package init(subject: String = "/CN=Semel's tests") async throws {
    try await openssl(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
      subject, "-keyout", directory.file("ca.key"), "-out", authority)
  }

  /// Signs a certificate.
  ///
  /// - Parameters:
  ///   - name: of the files; one that was made before is written over.
  ///   - names: the subject's alternative names, such as `DNS:localhost`.
  ///   - days: how long it is good for; less than 0: expired.
  @discardableResult
  package func issue(
    _ name: String, subject: String, names: [String] = [], days: Int = 2
  ) async throws -> Pair {
    let pair = Pair(certificate: directory.file("\(name).pem"), key: directory.file("\(name).key"))
    let request = directory.file("\(name).csr")
    try await openssl(
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout",
      "\(pair.key).new", "-out", request)
    var arguments = [
      "x509", "-req", "-in", request, "-CA", authority, "-CAkey", directory.file("ca.key"), "-CAcreateserial",
      "-days", "\(days)", "-out", "\(pair.certificate).new",
    ]
    if !names.isEmpty {
      let extensions = directory.file("\(name).ext")
      try "subjectAltName=\(names.joined(separator: ","))\n".write(
        toFile: extensions, atomically: true, encoding: .utf8)
      arguments += ["-extfile", extensions]
    }
    try await openssl(arguments)
    for file in [pair.key, pair.certificate] {
      guard rename("\(file).new", file) == 0 else { throw TestFailure("\(file) cannot be renamed") }
    }
    return pair
  }

  /// A server's for `localhost` and 127.0.0.1.
  @discardableResult
  package func server(_ name: String = "server", subject: String = "/CN=localhost") async throws -> Pair {
    try await issue(name, subject: subject, names: ["DNS:localhost", "IP:127.0.0.1"])
  }

  private func openssl(_ arguments: String...) async throws { try await openssl(arguments) }

  private func openssl(_ arguments: [String]) async throws {
    let process = try ManagedProcess(["openssl"] + arguments)
    let exit = try await process.exit()
    guard exit == .code(0) else { throw TestFailure("openssl \(arguments): \(exit)\n\(process.errors)") }
  }
}
