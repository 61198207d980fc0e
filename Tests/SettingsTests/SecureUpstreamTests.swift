import Idempotency
import TestSupport
import Testing
import Wire

@testable import Settings

struct SecureUpstreamTests {
  private func upstream(_ members: String) throws -> UpstreamSettings? {
    try load("upstreams: {a: {\(members)}}").upstreams["a"]
  }

  @Test func `https has port 443 and is verified`() throws {
    let settings = try #require(try upstream("url: \"https://api.example.com\""))
    #expect(settings.address == .tcp(host: "api.example.com", port: 443))
    #expect(settings.tls == ClientTLSFiles())
  }

  @Test func `files and the server's name are read`() async throws {
    let certificates = try await Certificates()
    let own = try await certificates.issue("own", subject: "/CN=semel")
    let settings = try upstream(
      "url: \"https://10.0.0.1\", tls: {ca: \(certificates.authority), certificate: \(own.certificate), "
        + "key: \(own.key), server_name: x.example}")
    let tls = try #require(settings?.tls)
    #expect(tls.ca == certificates.authority && tls.certificate == own.certificate && tls.key == own.key)
    #expect(tls.serverName == "x.example")
  }

  @Test func `files that cannot be used are refused`() async throws {
    let certificates = try await Certificates()
    let own = try await certificates.issue("own", subject: "/CN=semel")
    let other = try await certificates.issue("other", subject: "/CN=semel")
    func messages(ca: String, certificate: String, key: String) -> [String] {
      issues(
        "upstreams: {a: {url: \"https://h\", tls: {ca: \(ca), certificate: \(certificate), key: \(key)}}}"
      ).map { String($0.drop { $0 != "u" }) }
    }
    let ca = certificates.authority
    let missing = "which does not exist; give the path of a PEM file"
    #expect(messages(ca: ca, certificate: own.certificate, key: own.key) == [])
    #expect(
      messages(ca: own.key, certificate: own.certificate, key: own.key)
        == ["upstreams.a.tls.ca: holds no certificate in PEM"])
    #expect(
      messages(ca: ca, certificate: "/dev/null", key: own.key)
        == ["upstreams.a.tls.certificate: holds no certificate in PEM"])
    #expect(
      messages(ca: ca, certificate: own.certificate, key: "/nowhere")
        == ["upstreams.a.tls.key: names /nowhere, \(missing)"])
    #expect(
      messages(ca: ca, certificate: own.certificate, key: own.certificate)
        == ["upstreams.a.tls.key: holds no private key in PEM, or one with a passphrase"])
    #expect(
      messages(ca: "/none", certificate: "/dev/null", key: "/nowhere") == [
        "upstreams.a.tls.ca: names /none, \(missing)",
        "upstreams.a.tls.certificate: holds no certificate in PEM",
        "upstreams.a.tls.key: names /nowhere, \(missing)",
      ])
    let alone = "upstreams: {a: {url: \"https://h\", tls: {key: \(own.key)}}}"
    #expect(issues(alone) == ["1:40: upstreams.a.tls: must have both certificate and key, or neither"])
    let redis =
      "upstreams: {a: {url: \"https://h\"}}\nstore: {kind: redis, url: \"rediss://h\", tls: {certificate: \(own.certificate)}}"
    #expect(
      issues(redis) == ["2:46: store.tls: must have both certificate and key, or neither"])
    #expect(
      messages(ca: ca, certificate: own.certificate, key: other.key)
        == ["upstreams.a.tls.key: does not belong to the certificate"])
  }

  @Test(arguments: [
    ("url: \"http://h\", tls: {}", "1:39: upstreams.a.tls: is for https:// alone; take it out"),
    (
      "url: \"https://h\", tls: {ca: /none}",
      "1:45: upstreams.a.tls.ca: names /none, which does not exist; give the path of a PEM file"
    ),
    ("url: \"https://h\", http2: on", "1:42: upstreams.a.http2: must be off, auto or prior_knowledge"),
  ]) func `an impossible upstream is refused`(members: String, issue: String) {
    #expect(issues("upstreams: {a: {\(members)}}") == [issue])
  }
}
