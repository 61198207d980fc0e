import Idempotency
import Testing
import Wire

@testable import Settings

@Suite struct SecureUpstreamTests {
  private func upstream(_ members: String) throws -> UpstreamSettings? {
    try load("upstreams: {a: {\(members)}}").upstreams["a"]
  }

  @Test func `https has port 443 and is verified`() throws {
    let settings = try #require(try upstream("url: \"https://api.example.com\""))
    #expect(settings.address == .tcp(host: "api.example.com", port: 443))
    #expect(settings.tls == UpstreamSettings.TLS())
  }

  @Test func `files and the server's name are read`() throws {
    let settings = try upstream(
      "url: \"https://10.0.0.1\", tls: {ca: /dev/null, certificate: /dev/null, key: /dev/null, server_name: x.example}"
    )
    let tls = try #require(settings?.tls)
    #expect(tls.ca == "/dev/null" && tls.certificate == "/dev/null" && tls.key == "/dev/null")
    #expect(tls.serverName == "x.example")
  }

  @Test(arguments: [
    ("url: \"http://h\", tls: {}", "1:39: upstreams.a.tls: is for https:// alone; take it out"),
    (
      "url: \"https://h\", tls: {ca: /none}",
      "1:45: upstreams.a.tls.ca: cannot be read; give the path of a PEM file"
    ),
    (
      "url: \"https://h\", tls: {key: /dev/null}",
      "1:40: upstreams.a.tls: must have both certificate and key, or neither"
    ),
    ("url: \"https://h\", http2: on", "1:42: upstreams.a.http2: must be off, auto or prior_knowledge"),
  ]) func `an impossible upstream is refused`(members: String, issue: String) {
    #expect(issues("upstreams: {a: {\(members)}}") == [issue])
  }
}
