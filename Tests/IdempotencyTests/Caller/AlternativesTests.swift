import Idempotency
import NIOCore
import Testing
import Wire

/// Parts of a caller that are the first of several which a request has.
struct AlternativesTests {
  private static let policy = CallerPolicy(parts: [.either([.jwt("sub"), .cookie("sid")])])

  private static func peer(token payload: String? = nil, fault: TokenFault? = nil) throws -> CallerPeer {
    var peer = CallerPeer(address: "192.0.2.1")
    if let payload {
      peer.token = .verified(
        try TokenRules().read(Array(payload.utf8), claims: ["sub"], now: 0).get())
    }
    if let fault { peer.token = .refused(fault) }
    return peer
  }

  private func caller(
    by policy: CallerPolicy = Self.policy, _ fields: (String, String)..., token: String? = nil,
    fault: TokenFault? = nil, query: String? = nil, body: String = ""
  ) throws -> Caller {
    var request = Request()
    request.fields = fields
    return try policy.caller(
      head: request.head, peer: try Self.peer(token: token, fault: fault),
      query: query.map { ByteBuffer(string: $0) }, body: ByteBuffer(string: body))
  }

  private static let alice = #"{"iss":"i","sub":"alice"}"#

  @Test func `a caller by alternatives is that of the first one alone`() throws {
    let token = try caller(by: CallerPolicy(parts: [.jwt("sub")]), token: Self.alice)
    let session = try caller(by: CallerPolicy(parts: [.cookie("sid")]), ("Cookie", "sid=s"))
    #expect(try caller(token: Self.alice) == token)
    #expect(try caller(("Cookie", "sid=s"), token: Self.alice) == token)
    #expect(try caller(("Cookie", "sid=s")) == session)
    // A token without the claim, and an empty cookie, are not there.
    #expect(try caller(("Cookie", "sid=s"), token: #"{"iss":"i"}"#) == session)
    let reversed = CallerPolicy(parts: [.either([.cookie("sid"), .jwt("sub")])])
    #expect(try caller(by: reversed, ("Cookie", "sid=s"), token: Self.alice) == session)
    #expect(try caller(by: reversed, ("Cookie", "sid="), token: Self.alice) == token)
  }

  @Test(arguments: [CallerPolicy.Anonymous.refuse, .allow])
  func `an alternative at fault is not passed over`(anonymous: CallerPolicy.Anonymous) throws {
    var policy = Self.policy
    policy.anonymous = anonymous
    for fault in TokenFault.allCases {
      #expect(throws: Problem.callerUnknown(.token(fault))) {
        try caller(by: policy, ("Cookie", "sid=s"), fault: fault)
      }
    }
    #expect(throws: Problem.callerUnknown(.unreadable(.jwt("sub")))) {
      try caller(by: policy, ("Cookie", "sid=s"), token: #"{"sub":[]}"#)
    }
    policy.parts = [.either([.cookie("sid"), .header("x-account")])]
    #expect(throws: Problem.callerUnknown(.repeated(.cookie("sid")))) {
      try caller(by: policy, ("Cookie", "sid=s; sid=s"), ("X-Account", "a"))
    }
  }

  @Test func `credentials of another scheme are those of a later alternative`() throws {
    let authorization = CallerPart.header("authorization")
    let policy = CallerPolicy(parts: [.either([.jwt("sub"), authorization, .cookie("sid")])])
    let basic = ("Authorization", "Basic YTpi")
    #expect(
      try caller(by: policy, basic, ("Cookie", "sid=s"), fault: .otherScheme)
        == caller(by: CallerPolicy(parts: [authorization]), basic))
    #expect(throws: Problem.callerUnknown(.unknownScheme)) {
      try caller(by: policy, ("Authorization", "Digest a=b"), ("Cookie", "sid=s"), fault: .otherScheme)
    }
    #expect(throws: Problem.callerUnknown(.token(.malformed))) {
      try caller(by: policy, basic, fault: .malformed)
    }
  }

  @Test func `without any of the alternatives the part is missing`() throws {
    let part = Self.policy.parts[0]
    #expect(throws: Problem.callerUnknown(.missing(part))) { try caller() }
    let problem = Problem.callerUnknown(.missing(part))
    #expect(problem.detail.contains("a token with the claim sub, or by the cookie sid"))
    #expect(problem.challenge == "Bearer")
    var anonymous = Self.policy
    anonymous.anonymous = .allow
    let first = CallerPolicy(parts: [.jwt("sub")], anonymous: .allow)
    #expect(try caller(by: anonymous) == caller(by: first))
    #expect(try anonymous.caller(values: [:]) == caller(by: first))
  }

  @Test func `a body is read only where no earlier alternative is there`() throws {
    let policy = CallerPolicy(parts: [.either([.header("x-account"), .json("/a"), .query("q")])])
    func early(_ fields: (String, String)...) throws -> Caller? {
      var request = Request()
      request.fields = fields
      return try policy.callerBeforeBody(
        head: request.head, peer: CallerPeer(address: nil), query: ByteBuffer(string: "q=1"))
    }
    #expect(try early(("X-Account", "x")) == caller(by: policy, ("X-Account", "x")))
    #expect(try early() == nil)
    #expect(
      try caller(by: policy, query: "q=1", body: #"{"a":"b"}"#)
        == caller(by: CallerPolicy(parts: [.json("/a")]), body: #"{"a":"b"}"#))
    #expect(
      try caller(by: policy, query: "q=1", body: "{}")
        == caller(by: CallerPolicy(parts: [.query("q")]), query: "q=1"))
    #expect(throws: Problem.callerUnknown(.unreadable(.json("/a")))) {
      try caller(by: policy, query: "q=1", body: "{")
    }
  }

  @Test func `an operator names the alternative that counts`() throws {
    #expect(try Self.policy.caller(values: ["cookie:sid": "s"]) == caller(("Cookie", "sid=s")))
    let token = ["jwt:sub": "alice", "jwt_issuer": "i"]
    #expect(try Self.policy.caller(values: token) == caller(token: Self.alice))
    let both = token.merging(["cookie:sid": "s"]) { first, _ in first }
    #expect(try Self.policy.caller(values: both) == caller(token: Self.alice))
    #expect(throws: CallerPolicy.ValueFault.unknown("cookie:other")) {
      try Self.policy.caller(values: ["cookie:sid": "s", "cookie:other": "s"])
    }
    #expect(throws: CallerPolicy.ValueFault.refused(.missing(Self.policy.parts[0]))) {
      try Self.policy.caller(values: [:])
    }
  }

  @Test func `an alternative that anybody may name proves nothing`() {
    let (token, account) = (CallerPart.jwt("sub"), CallerPart.query("account"))
    #expect(!Self.policy.provesNothing)
    #expect(CallerPolicy(parts: [.either([token, account])]).provesNothing)
    #expect(!CallerPolicy(parts: [.either([token, account]), .cookie("sid")]).provesNothing)
  }

  @Test(arguments: [
    (
      [CallerPart.jwt("sub")], [CallerPart.either([.jwt("sub"), .cookie("sid")])],
      CallerPolicy.Anonymous.refuse, true
    ),
    ([.jwt("sub")], [.either([.jwt("sub"), .cookie("sid")])], .allow, false),
    ([.jwt("sub")], [.either([.cookie("sid"), .jwt("sub")])], .refuse, false),
    ([.either([.jwt("sub"), .cookie("sid")])], [.jwt("sub")], .refuse, false),
    (
      [.either([.jwt("sub"), .cookie("sid")]), .address],
      [.either([.jwt("sub"), .cookie("sid"), .query("q")]), .address], .refuse, true
    ),
    ([.jwt("sub")], [.jwt("sub"), .address], .refuse, false),
  ])
  func `alternatives after the others change no record's id`(
    old: [CallerPart], new: [CallerPart], anonymous: CallerPolicy.Anonymous, isSame: Bool
  ) throws {
    func identity(_ parts: [CallerPart]) throws -> RequestIdentity {
      let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))
      var policy = RoutePolicy(name: "r", match: RouteMatch(), upstream: upstream)
      policy.caller = CallerPolicy(parts: parts, anonymous: anonymous)
      return try #require(RequestIdentity(policy))
    }
    #expect(try identity(old).changes(to: identity(new)) == (isSame ? [] : ["caller"]))
  }
}
