import Foundation
import Idempotency
import Settings
import Testing

struct ListenTests {
  @Test func `a listener may expect the PROXY protocol`() throws {
    let settings = try load(upstream + "listen: [{address: \"127.0.0.1:1\", proxy_protocol: true}]")
    #expect(settings.listen.map(\.proxyProtocol) == [true])
  }

  @Test(arguments: [("\"0600\"", 0o600), ("777", 0o777), ("0660", 0o660)])
  func `a Unix socket has permissions`(text: String, mode: Int) throws {
    #expect(
      try load(upstream + "listen: [{address: \"unix:/s\", mode: \(text)}]").listen.map(\.mode) == [mode])
  }

  @Test(arguments: [
    ("address: \"unix:/s\", mode: \"0888\"", "must be three octal digits, perhaps after a 0, such as 0660"),
    ("address: \"unix:/s\", mode: \"1777\"", "must be three octal digits, perhaps after a 0, such as 0660"),
    ("address: \"unix:/s\", mode: \"+77\"", "must be three octal digits, perhaps after a 0, such as 0660"),
    ("address: \"h:1\",     mode: \"0600\"", "is for unix:/path alone; take it out"),
  ]) func `permissions are three digits, of a socket that has some`(members: String, message: String) {
    #expect(issues(upstream + "listen: [{\(members)}]") == ["2:37: listen[0].mode: \(message)"])
  }

  @Test func `each file of TLS is checked at its member`() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "semel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let empty = directory.appending(path: "empty.pem").path
    try Data("nothing\n".utf8).write(to: URL(filePath: empty))
    func tls(_ certificate: String, _ key: String) -> [String] {
      issues(
        upstream + """
          listen:
            - address: 127.0.0.1:1
              tls:
                certificate: \(certificate)
                key: \(key)
          """)
    }
    #expect(
      tls("/nowhere/c.pem", empty) == [
        "5:20: listen[0].tls.certificate: names /nowhere/c.pem, which does not exist; give the path of a PEM file",
        "6:12: listen[0].tls.key: holds no private key in PEM, or one with a passphrase",
      ])
    #expect(
      tls(empty, "/nowhere/k.pem\n      client_ca: /nowhere/ca.pem") == [
        "5:20: listen[0].tls.certificate: holds no certificate in PEM",
        "6:12: listen[0].tls.key: names /nowhere/k.pem, which does not exist; give the path of a PEM file",
        "7:18: listen[0].tls.client_ca: names /nowhere/ca.pem, which does not exist; give the path of a PEM file",
      ])
    #expect(
      issues(upstream + "listen: [{address: \"h:1\", tls: {certificate: /nowhere/c.pem}}]") == [
        "2:32: listen[0].tls.key: is missing: write the path of a PEM file",
        "2:46: listen[0].tls.certificate: names /nowhere/c.pem, which does not exist; give the path of a PEM file",
      ])
  }

  @Test(arguments: [
    ("client_certificate", CallerPart.CertificatePart.identity), ("client_certificate:subject", .subject),
    ("client_certificate:san", .san),
  ]) func `a client's certificate may identify the caller`(text: String, part: CallerPart.CertificatePart)
    throws
  {
    let settings = try load(upstream + "routes: [{name: r, caller: {parts: [\"\(text)\"]}}]")
    #expect(settings.routes.map(\.caller) == [CallerPolicy(parts: [.clientCertificate(part)])])
  }

  @Test(arguments: ["client_certificate:", "client_certificate:issuer"])
  func `no other part of the certificate may identify the caller`(text: String) {
    #expect(
      issues(upstream + "routes: [{name: r, caller: {parts: [\"\(text)\"]}}]") == [
        "2:37: routes[0].caller.parts[0]: "
          + "must be client_certificate, client_certificate:subject or client_certificate:san"
      ])
  }
}
