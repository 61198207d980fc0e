import Idempotency
import NIOCore
import Testing

/// Callers that operators name by values.
struct CallerValuesTests {
  private func reason(_ part: CallerPart, _ value: String, anonymous: CallerPolicy.Anonymous = .refuse)
    -> CallerPolicy.ValueFault?
  {
    do {
      _ = try CallerPolicy(parts: [part], anonymous: anonymous).caller(values: [part.text: value])
      return nil
    } catch {
      return error
    }
  }

  /// The result of a request with a field.
  private func requested(_ policy: CallerPolicy, _ field: (String, String)) -> Result<Caller, Problem> {
    do {
      return .success(try policy.caller(head: Request(field).head, peer: CallerPeer(address: nil)))
    } catch {
      return .failure(error)
    }
  }

  /// The result of an operator's value; `nil` if it is refused for another reason than a request's would be.
  private func named(_ policy: CallerPolicy, _ value: String) -> Result<Caller, Problem>? {
    do {
      return .success(try policy.caller(values: [policy.parts[0].text: value]))
    } catch {
      guard case .refused(let fault) = error else { return nil }
      return .failure(.callerUnknown(fault))
    }
  }

  @Test(
    arguments: [CallerPolicy.Anonymous.refuse, .allow],
    [
      "Bearer alice", "bearer alice", "Bearer", "BASIC", "Basic", "Digest x", "alice", "Digest",
      "Bearer\talice", "x y",
      "", "é",
    ])
  func `a field's value is judged as that of a request`(anonymous: CallerPolicy.Anonymous, value: String) {
    for name in ["authorization", "x-account"] {
      let policy = CallerPolicy(parts: [.header(name)], anonymous: anonymous)
      for written in [value, " \(value)", "\t\(value) \t "] {
        #expect(named(policy, written) == requested(policy, (name, value)), "\(name) \(written)")
      }
    }
    let cookie = CallerPolicy(parts: [.cookie("sid")], anonymous: anonymous)
    #expect(named(cookie, value) == requested(cookie, ("Cookie", "sid=\(value)")))
  }

  @Test(arguments: [
    (CallerPart.header("a"), "x\ny"), (.header("a"), "x\u{0}"), (.header("a"), "\u{7F}"),
    (.cookie("a"), "x;y"),
    (.cookie("a"), "x\r\ny"), (.address, "foo"), (.address, "127.0.0.1:80"), (.address, "127.0.0.01"),
    (.address, "[::1]"), (.address, " 127.0.0.1"), (.address, "127.1"), (.address, "fe80::1%eth0"),
    (.clientCertificate(.san), "a"), (.clientCertificate(.san), "dns:"),
    (.clientCertificate(.san), "subject:CN=a"),
    (.clientCertificate(.san), "dns:a\u{0}uri:b"), (.clientCertificate(.identity), "CN=a"),
    (.clientCertificate(.identity), "subject:"),
  ])
  func `a value that no request can have is refused`(part: CallerPart, value: String) {
    for anonymous in [CallerPolicy.Anonymous.refuse, .allow] {
      #expect(reason(part, value, anonymous: anonymous) == .refused(.unreadable(part)))
    }
  }

  @Test func `an address is that of its canonical form`() throws {
    let policy = CallerPolicy(parts: [.address])
    for (canonical, others) in [
      ("127.0.0.1", ["127.0.0.1", "::ffff:127.0.0.1", "::FFFF:7f00:1"]), ("::1", ["::1", "0:0:0:0:0:0:0:1"]),
      ("2001:db8::1", ["2001:DB8:0::1"]),
    ] {
      let request = try policy.caller(head: Request().head, peer: CallerPeer(address: canonical))
      for other in others { #expect(try policy.caller(values: ["address": other]) == request) }
    }
  }

  @Test func `names of a certificate are those of their kind, sorted`() throws {
    for part in [CallerPart.CertificatePart.san, .identity] {
      let policy = CallerPolicy(parts: [.clientCertificate(part)])
      let names = CertificateIdentity.names(uris: [], hosts: ["B.example", "a.example"], mails: ["x@y"])
      #expect(names == ["dns:a.example", "dns:b.example"])
      let identity = CertificateIdentity(subject: "CN=a", names: names)
      let request = try policy.caller(
        head: Request().head, peer: CallerPeer(address: nil, certificate: identity))
      let text = CallerPart.clientCertificate(part).text
      #expect(try policy.caller(values: [text: "dns:b.example\u{0}dns:A.example"]) == request)
    }
    let policy = CallerPolicy(parts: [.clientCertificate(.identity)])
    let request = try policy.caller(
      head: Request().head,
      peer: CallerPeer(address: nil, certificate: CertificateIdentity(subject: "CN=a", names: [])))
    #expect(try policy.caller(values: ["client_certificate": "subject:CN=a"]) == request)
  }

  @Test func `a part in two spellings, an unknown one and another issuer are refused`() {
    let policy = CallerPolicy(parts: [.header("a")])
    #expect(throws: CallerPolicy.ValueFault.repeated("header:a")) {
      try policy.caller(values: ["header:a": "x", "Header:A": "x"])
    }
    #expect(throws: CallerPolicy.ValueFault.unknown("header:b")) {
      try policy.caller(values: ["header:a": "x", "header:B": "x"])
    }
    var token = CallerPolicy(parts: [.jwt("sub")])
    token.issuer = "a"
    #expect(throws: CallerPolicy.ValueFault.otherIssuer("a")) {
      try token.caller(values: ["jwt:sub": "x", "jwt_issuer": "b"])
    }
    #expect(throws: Never.self) { try token.caller(values: ["jwt:sub": "x", "jwt_issuer": "a"]) }
  }
}
