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
      CallerPolicy.Anonymous.refuse, false
    ),
    ([.jwt("sub")], [.either([.jwt("sub"), .cookie("sid")])], .allow, false),
    ([.jwt("sub")], [.either([.cookie("sid"), .jwt("sub")])], .refuse, false),
    ([.either([.jwt("sub"), .cookie("sid")])], [.jwt("sub")], .refuse, false),
    (
      [.either([.jwt("sub"), .cookie("sid")]), .address],
      [.either([.jwt("sub"), .cookie("sid"), .query("q")]), .address], .refuse, false
    ),
    ([.jwt("sub")], [.jwt("sub"), .address], .refuse, false),
    ([.jwt("sub"), .address], [.optional(.jwt("sub")), .address], .refuse, true),
    ([.optional(.jwt("sub")), .address], [.jwt("sub"), .address], .refuse, true),
    ([.optional(.jwt("sub")), .address], [.either([.jwt("sub"), .cookie("a")]), .address], .refuse, false),
  ])
  func `an alternative changes records' ids, and an optional part none`(
    old: [CallerPart], new: [CallerPart], anonymous: CallerPolicy.Anonymous, isSame: Bool
  ) throws {
    func identity(_ parts: [CallerPart]) -> RouteIdentity {
      let upstream = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))
      var policy = RoutePolicy(name: "r", match: RouteMatch(), upstream: upstream)
      policy.caller = CallerPolicy(parts: parts, anonymous: anonymous)
      return RouteIdentity(policy)
    }
    #expect(identity(old).changes(to: identity(new)) == (isSame ? [] : ["caller"]))
  }
}

/// Parts of a caller that its requests may lack.
struct OptionalPartTests {
  private static let policy = CallerPolicy(
    parts: [.header("authorization"), .optional(.header("stripe-account"))])

  private func caller(
    by policy: CallerPolicy = Self.policy, _ fields: (String, String)...
  ) throws(Problem) -> Caller {
    var request = Request()
    request.fields = fields
    return try policy.caller(head: request.head, peer: CallerPeer(address: nil))
  }

  private let key = ("Authorization", "Bearer a")
  private let account = ("Stripe-Account", "acct_1")

  @Test func `an optional part is encoded as a part that is there, or missing`() throws {
    let required = CallerPolicy(parts: [.header("authorization"), .header("stripe-account")])
    var anonymous = required
    anonymous.anonymous = .allow
    #expect(try caller(key, account) == caller(by: required, key, account))
    #expect(try caller(key) == caller(by: anonymous, key))
    #expect(try caller(key) == caller(key, ("Stripe-Account", "")))
    #expect(try caller(key) != caller(key, account))
    #expect(try caller(key) != caller(by: CallerPolicy(parts: [.header("authorization")]), key))
  }

  @Test func `the other parts must be there, and an optional one must be sound`() {
    #expect(throws: Problem.callerUnknown(.missing(.header("authorization")))) { try caller(account) }
    #expect(throws: Problem.callerUnknown(.repeated(.header("stripe-account")))) {
      try caller(key, account, account)
    }
    let token = CallerPolicy(parts: [.header("x-device"), .optional(.jwt("sub"))])
    var peer = CallerPeer(address: nil)
    peer.token = .refused(.expired)
    #expect(throws: Problem.callerUnknown(.token(.expired))) {
      try token.caller(head: Request(("X-Device", "d")).head, peer: peer)
    }
  }

  @Test func `an operator names an optional part in either form`() throws {
    let values = ["header:Authorization": "Bearer a"]
    #expect(try Self.policy.caller(values: values) == caller(key))
    for name in ["header:Stripe-Account", "header?:Stripe-Account", "Header?:STRIPE-ACCOUNT"] {
      let named = values.merging([name: "acct_1"]) { first, _ in first }
      #expect(try Self.policy.caller(values: named) == caller(key, account))
    }
    #expect(throws: CallerPolicy.ValueFault.repeated("header:stripe-account")) {
      try Self.policy.caller(values: ["header:Stripe-Account": "a", "header?:Stripe-Account": "a"])
    }
    #expect(CallerPart.normalized("query?:A?:b") == "query:A?:b")
    #expect(CallerPart.normalized("query:A?:b") == "query:A?:b")
  }

  @Test func `an optional part proves nothing`() {
    #expect(CallerPolicy(parts: [.query("a"), .optional(.header("authorization"))]).provesNothing)
    #expect(!Self.policy.provesNothing)
  }
}
