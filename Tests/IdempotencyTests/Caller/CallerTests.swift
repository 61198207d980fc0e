import Idempotency
import NIOCore
import Testing

struct CallerTests {
  private func caller(
    _ parts: [CallerPart], _ fields: [(String, String)], address: String = "192.0.2.1",
    certificate: CertificateIdentity? = nil, anonymous: CallerPolicy.Anonymous = .refuse
  ) throws(Problem) -> Caller {
    var request = Request()
    request.fields = fields
    return try CallerPolicy(parts: parts, anonymous: anonymous).caller(
      head: request.head, peer: CallerPeer(address: address, certificate: certificate))
  }

  private func fault(_ parts: [CallerPart], _ fields: [(String, String)]) -> Problem? {
    do {
      _ = try caller(parts, fields)
      return nil
    } catch {
      return error
    }
  }

  @Test func `the same parts are the same caller`() throws {
    let parts: [CallerPart] = [.header("authorization"), .cookie("session"), .address]
    let one = try caller(parts, [("Authorization", "Bearer a"), ("Cookie", "x=1; session=s")])
    let other = try caller(
      parts, [("cookie", "session=s;y"), ("X-More", "1"), ("AUTHORIZATION", "Bearer a")])
    #expect(one == other)
    let digests = LogDigests()
    #expect(one.digestText(by: digests) == other.digestText(by: digests))
  }

  @Test func `any other part is another caller`() throws {
    let parts: [CallerPart] = [.header("authorization"), .cookie("session"), .address]
    let fields = [("Authorization", "Bearer a"), ("Cookie", "session=s")]
    let one = try caller(parts, fields)
    #expect(try caller(parts, [("Authorization", "Bearer b"), fields[1]]) != one)
    #expect(try caller(parts, [("Authorization", "bearer a"), fields[1]]) != one)
    #expect(try caller(parts, [fields[0], ("Cookie", "session=S")]) != one)
    #expect(try caller(parts, fields, address: "192.0.2.2") != one)
    #expect(try caller(parts.reversed(), fields) != one)
    #expect(try caller(Array(parts.prefix(2)), fields) != one)
  }

  @Test func `parts cannot run into each other`() throws {
    let parts: [CallerPart] = [.header("a"), .header("b")]
    var seen: Set<Caller> = []
    let values = ["", "x", "xx", "x\u{1}", "\u{1}", "\u{1}x", "\u{1}\u{1}b\u{1}\u{1}x"]
    for first in values {
      for second in values {
        seen.insert(try caller(parts, [("a", first), ("b", second)], anonymous: .allow))
      }
    }
    #expect(seen.count == values.count * values.count)
  }

  @Test func `a header, a cookie and an address of one value are three callers`() throws {
    let callers = [
      try caller([.header("a")], [("a", "x")]), try caller([.cookie("a")], [("Cookie", "a=x")]),
      try caller([.address], [], address: "x"), try caller([.header("b")], [("b", "x")]),
    ]
    #expect(Set(callers).count == 4)
  }

  private func caller(
    _ parts: [CallerPart], query: String? = nil, json: String? = nil, coding: String? = nil,
    anonymous: CallerPolicy.Anonymous = .refuse
  ) throws(Problem) -> Caller {
    var request = json.map { Request("application/json", $0) } ?? Request()
    request.query = query
    if let coding { request.fields.append(("Content-Encoding", coding)) }
    let policy = CallerPolicy(parts: parts, anonymous: anonymous)
    return try policy.caller(
      head: request.head, peer: CallerPeer(address: nil), query: request.queryBuffer,
      body: ByteBuffer(bytes: request.body))
  }

  @Test func `parameters and JSON members are callers`() throws {
    let query = try caller([.query("account")], query: "x=1&account=a%62")
    #expect(try caller([.query("account")], query: "account=ab") == query)
    #expect(try caller([.query("account")], query: "account=a") != query)
    let json = try caller([.json("/a/id")], json: #"{"a":{"id":"ab"}}"#)
    #expect(try caller([.json("/a/id")], json: #"{ "b": 1, "a": {"id": "\u0061b"} }"#) == json)
    #expect(try caller([.json("/a/id")], json: #"{"a":{"id":12}}"#) != json)
    #expect(Set([query, json]).count == 2)
    #expect(try CallerPolicy(parts: [.query("account")]).caller(values: ["query:account": "ab"]) == query)
    #expect(try CallerPolicy(parts: [.json("/a/id")]).caller(values: ["json:/a/id": "ab"]) == json)
  }

  @Test(arguments: [CallerPolicy.Anonymous.refuse, .allow])
  func `a parameter or a member that cannot be read is never an anonymous caller`(
    anonymous: CallerPolicy.Anonymous
  ) {
    for (part, query, json, fault) in [
      (.query("a"), "a=1&%61=2", nil, .repeated(.query("a"))),
      (.query("a"), "a=%4", nil, .unreadable(.query("a"))),
      (.json("/a"), nil, #"{"a":1,"a":2}"#, .repeated(.json("/a"))),
      (.json("/a"), nil, #"{"a":true}"#, .unreadable(.json("/a"))),
      (.json("/a"), nil, #"{"a":null}"#, .unreadable(.json("/a"))),
      (.json("/a"), nil, #"{"a":"x""#, .unreadable(.json("/a"))),
      (.json("/a"), nil, "a=x", .unreadable(.json("/a"))),
    ] as [(CallerPart, String?, String?, CallerFault)] {
      #expect(throws: Problem.callerUnknown(fault)) {
        try caller([part], query: query, json: json, anonymous: anonymous)
      }
    }
    #expect(throws: Problem.callerUnknown(.unreadable(.json("/a")))) {
      try caller([.json("/a")], json: #"{"a":"x"}"#, coding: "gzip", anonymous: anonymous)
    }
  }

  @Test func `a missing parameter or member is refused, or anonymous`() throws {
    for (part, query, json) in [
      (.query("a"), "b=1", nil), (.query("a"), "a=", nil), (.query("a"), nil, nil), (.json("/a"), nil, "{}"),
      (.json("/a"), nil, #"{"a":""}"#), (.json("/a"), nil, nil), (.json("/a"), nil, "[]"),
    ] as [(CallerPart, String?, String?)] {
      #expect(throws: Problem.callerUnknown(.missing(part))) { try caller([part], query: query, json: json) }
      let anonymous = try caller([part], query: query, json: json, anonymous: .allow)
      let policy = CallerPolicy(parts: [part], anonymous: .allow)
      #expect(try policy.caller(values: [:]) == anonymous)
    }
  }

  @Test func `before the body comes, all other parts are looked at`() throws {
    let policy = CallerPolicy(parts: [.json("/a"), .query("q")])
    let head = Request("application/json", "").head
    let peer = CallerPeer(address: nil)
    #expect(try policy.callerBeforeBody(head: head, peer: peer, query: ByteBuffer(string: "q=1")) == nil)
    #expect(throws: Problem.callerUnknown(.missing(.query("q")))) {
      try policy.callerBeforeBody(head: head, peer: peer, query: nil)
    }
    let early = try CallerPolicy(parts: [.query("q")]).callerBeforeBody(
      head: head, peer: peer, query: ByteBuffer(string: "q=1"))
    #expect(try early == caller([.query("q")], query: "q=1"))
  }

  @Test func `without parts all clients are one caller`() throws {
    let policy = CallerPolicy(parts: [])
    #expect(policy.isShared)
    let one = try policy.caller(head: Request(("A", "x")).head, peer: CallerPeer(address: "192.0.2.1"))
    #expect(try policy.caller(head: Request().head, peer: CallerPeer(address: nil)) == one)
    #expect(try policy.caller(values: [:]) == one)
    #expect(try caller([.header("a")], [], anonymous: .allow) != one)
  }

  @Test func `names of parts differ by their case, but for those of header fields`() throws {
    let policy = CallerPolicy(parts: [.query("userId"), .query("userid"), .header("x-user")])
    let request = try CallerPolicy(parts: policy.parts).caller(
      head: Request(("X-User", "c")).head, peer: CallerPeer(address: nil),
      query: ByteBuffer(string: "userId=a&userid=b"))
    let values = ["query:userId": "a", "query:userid": "b", "Header:X-User": "c"]
    #expect(try policy.caller(values: values) == request)
    #expect(throws: CallerPolicy.ValueFault.refused(.missing(.query("userId")))) {
      try policy.caller(values: ["query:USERID": "a", "query:userid": "b", "header:x-user": "c"])
    }
    let member = CallerPolicy(parts: [.json("/accountId")])
    let named = try member.caller(
      head: Request().head, peer: CallerPeer(address: nil), body: ByteBuffer(string: #"{"accountId":"a"}"#))
    #expect(try member.caller(values: ["json:/accountId": "a"]) == named)
  }

  @Test func `a missing or empty part is refused`() {
    func missing(_ part: CallerPart) -> Problem { .callerUnknown(.missing(part)) }
    #expect(fault([.header("a")], []) == missing(.header("a")))
    #expect(fault([.header("a")], [("a", "")]) == missing(.header("a")))
    #expect(fault([.header("a"), .header("b")], [("a", "x")]) == missing(.header("b")))
    #expect(fault([.cookie("a")], [("Cookie", "b=1; A=1; a")]) == missing(.cookie("a")))
    #expect(fault([.cookie("a")], [("Cookie", "a=")]) == missing(.cookie("a")))
    #expect(throws: missing(.address)) { try caller([.address], [], address: "") }
    #expect(missing(.address).status == 401)
  }

  @Test func `only a fault of Authorization asks for other credentials`() {
    let authorization = CallerPart.header("authorization")
    for fault in [CallerFault.missing(authorization), .repeated(authorization), .unknownScheme] {
      #expect(Problem.callerUnknown(fault).challenge == "Bearer")
    }
    for fault in [
      CallerFault.missing(.header("x-user")), .repeated(.cookie("authorization")), .missing(.address),
    ] {
      #expect(Problem.callerUnknown(fault).challenge == nil)
    }
  }

  @Test func `a missing part is empty if anonymous callers are allowed`() throws {
    let absent = try caller([.header("a")], [], anonymous: .allow)
    let empty = try caller([.header("a")], [("a", "")], anonymous: .allow)
    let zero = try caller([.header("a")], [("a", "\u{0}")], anonymous: .allow)
    #expect(absent == empty)
    #expect(zero != absent)
    let policy = CallerPolicy(parts: [.header("a")], anonymous: .allow)
    for values in [[:], ["header:a": ""]] { #expect(try policy.caller(values: values) == absent) }
  }

  @Test(arguments: [CallerPolicy.Anonymous.refuse, .allow])
  func `a repeated part is refused`(anonymous: CallerPolicy.Anonymous) {
    for fields in [[("a", "x"), ("A", "x")], [("a", ""), ("a", "x")]] {
      #expect(throws: Problem.callerUnknown(.repeated(.header("a")))) {
        try caller([.header("a")], fields, anonymous: anonymous)
      }
    }
    for fields in [[("Cookie", "a=x; a=x")], [("Cookie", "a=x"), ("Cookie", "b=1; a=")]] {
      #expect(throws: Problem.callerUnknown(.repeated(.cookie("a")))) {
        try caller([.cookie("a")], fields, anonymous: anonymous)
      }
    }
  }

  @Test(arguments: [
    ("a=x", "x"), ("b=y;a=x", "x"), ("b=y;  a=x  ; c=z", "x"), ("a=x=y", "x=y"), ("a=\"x\"", "\"x\""),
    ("a = x", "x"),
    ("aa=y; a=x; ba=z", "x"),
  ])
  func `a cookie is found among others`(field: String, value: String) throws {
    #expect(
      try caller([.cookie("a")], [("Cookie", field)]) == caller([.cookie("a")], [("Cookie", "a=" + value)]))
    #expect(
      try caller([.cookie("a")], [("Cookie", field)]) != caller([.cookie("a")], [("Cookie", "a=other")]))
  }

  @Test func `cookies may be spread over several fields`() throws {
    let spread = try caller([.cookie("a")], [("Cookie", "b=1"), ("Cookie", "a=x"), ("Cookie", "c=1")])
    #expect(try caller([.cookie("a")], [("Cookie", "a=x")]) == spread)
  }

  @Test(arguments: [
    "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", "GOOG4-HMAC-SHA256", "Digest", "OAuth", "Signature", "DPoP",
    "Hawk",
    "Negotiate", "NTLM", "SharedKey", "Bearer2", "Bearer,",
  ])
  func `a scheme that may change with each request is refused`(scheme: String) throws {
    let parts: [CallerPart] = [.header("authorization")]
    for spelling in [scheme, scheme.lowercased(), scheme.uppercased()] {
      for rest in [" x", "\tx", " a=1, b=2"] {
        #expect(fault(parts, [("Authorization", spelling + rest)]) == .callerUnknown(.unknownScheme))
      }
    }
    #expect(fault([.header("x-authorization")], [("X-Authorization", scheme + " x")]) == nil)
    var request = Request()
    request.fields = [("Authorization", scheme.uppercased() + " x")]
    let policy = CallerPolicy(parts: parts, schemes: ["other", scheme.lowercased()])
    _ = try policy.caller(head: request.head, peer: CallerPeer(address: nil))
  }

  @Test(arguments: [
    "Token token=\"a\", nonce=\"1\"", "token nonce=1;token=a", "Token\ttoken=a,Nonce=1", "Token nonce=",
  ])
  func `a token with a nonce may change with each request`(credentials: String) {
    #expect(
      fault([.header("authorization")], [("Authorization", credentials)]) == .callerUnknown(.unknownScheme))
  }

  @Test(arguments: [
    "Token announce=1", "Token token=nonce", "Bearer nonce=1", "token a, nonc=1",
    "Bearer x", "bearer\tx", "Basic eDp5", "TOKEN token=x", "ApiKey x y", "x", "Digest", "a,b=c",
  ])
  func `known schemes and bare tokens are callers`(credentials: String) {
    #expect(fault([.header("authorization")], [("Authorization", credentials)]) == nil)
  }

  @Test(arguments: ["Bearer", "basic", "APIKEY"])
  func `a known scheme without credentials is a missing part`(scheme: String) throws {
    let parts = [CallerPart.header("authorization")]
    #expect(fault(parts, [("Authorization", scheme)])?.code == .callerUnknown)
    let caller = try caller(parts, [("Authorization", scheme)], anonymous: .allow)
    #expect(try caller == self.caller(parts, [], anonymous: .allow))
  }

  @Test func `long parts keep their lengths`() throws {
    let parts: [CallerPart] = [.header("a"), .header("b")]
    let long = String(repeating: "x", count: 300)
    let one = try caller(parts, [("a", long), ("b", "y")])
    let other = try caller(parts, [("a", long + "x"), ("b", "y")])
    #expect(one != other)
    #expect(one.framed.count == other.framed.count - 1)
  }

  @Test func `a certificate counts by its names, or by its subject where it has none`() throws {
    let named = CertificateIdentity(subject: "CN=a", names: ["uri:spiffe://x/a"])
    let unnamed = CertificateIdentity(subject: "CN=a", names: [])
    let parts = [CallerPart.clientCertificate(.identity)]
    // Renewed with another subject it is the same caller.
    let renewed = CertificateIdentity(subject: "CN=b", names: named.names)
    #expect(try caller(parts, [], certificate: named) == caller(parts, [], certificate: renewed))
    #expect(try caller(parts, [], certificate: named) != caller(parts, [], certificate: unnamed))
    let posing = CertificateIdentity(subject: nil, names: ["CN=a"])
    #expect(try caller(parts, [], certificate: unnamed) != caller(parts, [], certificate: posing))
  }

  @Test(arguments: CallerPart.CertificatePart.allCases)
  func `names of authorities that are told apart are other callers`(part: CallerPart.CertificatePart) throws {
    let parts = [CallerPart.clientCertificate(part)]
    let callers = try [nil, "a", "b", "@a"].map { authority in
      let shown = CertificateIdentity(subject: "CN=x", names: ["dns:x"], authority: authority)
      let caller = try caller(parts, [], certificate: shown)
      // An operator finds the same.
      let value = part == .subject ? "CN=x" : "dns:x"
      var values = [parts[0].text: value]
      values["client_ca_name"] = authority
      #expect(try CallerPolicy(parts: parts).caller(values: values) == caller)
      return caller
    }
    #expect(Set(callers).count == callers.count)
    // Nobody is certified by nobody.
    let nobody = try caller(parts, [], anonymous: .allow)
    var policy = CallerPolicy(parts: parts)
    policy.anonymous = .allow
    #expect(try policy.caller(values: ["client_ca_name": "a"]) == nobody)
  }

  @Test func `a certificate's subject and its names are parts of their own`() throws {
    let one = CertificateIdentity(subject: "CN=a", names: ["dns:a", "dns:b"])
    let other = CertificateIdentity(subject: "CN=a", names: ["dns:a"])
    let subject = [CallerPart.clientCertificate(.subject)]
    let names = [CallerPart.clientCertificate(.san)]
    #expect(try caller(subject, [], certificate: one) == caller(subject, [], certificate: other))
    #expect(try caller(names, [], certificate: one) != caller(names, [], certificate: other))
    #expect(try caller(names, [], certificate: other) != caller(subject, [], certificate: other))
  }

  @Test(arguments: CallerPart.CertificatePart.allCases)
  func `a caller without a certificate is unknown, or empty where anonymous ones are allowed`(
    part: CallerPart.CertificatePart
  ) throws {
    let parts = [CallerPart.clientCertificate(part)]
    #expect(fault(parts, [])?.code == .callerUnknown)
    let empty = try caller(parts, [], anonymous: .allow)
    #expect(try empty == caller(parts, [], anonymous: .allow))
    let shown = CertificateIdentity(subject: "CN=a", names: ["dns:a"])
    #expect(try empty != caller(parts, [], certificate: shown, anonymous: .allow))
  }
}
