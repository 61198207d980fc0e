import Idempotency
import NIOCore
import Testing
import Wire

struct TokenRulesTests {
  private static let now: Int64 = 1_000_000

  private func read(
    _ payload: String, _ change: (inout TokenRules) -> Void = { _ in }, now: Int64 = Self.now
  ) -> Result<VerifiedToken, TokenFault> {
    var rules = TokenRules()
    change(&rules)
    return rules.read(Array(payload.utf8), claims: ["sub", "/a/b"], now: now)
  }

  private func fault(_ payload: String, _ change: (inout TokenRules) -> Void = { _ in }) -> TokenFault? {
    if case .failure(let fault) = read(payload, change) { fault } else { nil }
  }

  @Test(arguments: [
    (#"{"exp":999970}"#, TokenFault.expired), (#"{"exp":999971}"#, nil), (#"{"exp":999971.9}"#, nil),
    (#"{"exp":1e6}"#, nil), (#"{"exp":"1000000"}"#, .malformed), (#"{"exp":1e300}"#, .malformed),
    (#"{"exp":-1e18}"#, .malformed), (#"{"exp":null}"#, .malformed),
    (#"{"exp":2000000,"exp":1}"#, .malformed),
    (#"{"nbf":1000030}"#, nil), (#"{"nbf":1000031}"#, .premature), (#"{"iss":["a"]}"#, .malformed),
    ("{", .malformed),
  ]) func `times count with their leeway`(payload: String, expected: TokenFault?) {
    #expect(fault(payload) == expected)
  }

  @Test func `a token ends with its leeway`() throws {
    #expect(try read(#"{"exp":1000000}"#).get().endsAt == 1_000_030)
    #expect(try read("{}").get().endsAt == nil)
  }

  @Test(arguments: [
    (#"{"aud":"a"}"#, nil), (#"{"aud":["b","a"]}"#, nil), ("{}", TokenFault.foreign),
    (#"{"aud":"A"}"#, .foreign),
    (#"{"aud":["b"]}"#, .foreign), (#"{"aud":[["a"]]}"#, .foreign),
    (#"{"aud":"b","aud":"a"}"#, .foreign), (#"{"aud": [ "b" , "\u0061" ]}"#, nil), (#"{"aud":[]}"#, .foreign),
    // Neither a string nor an array of strings.
    (#"{"aud":{"0":"a"}}"#, .foreign), (#"{"aud":{"a":"a"}}"#, .foreign), (#"{"aud":[1,"a"]}"#, .foreign),
    (#"{"aud":["a",{"0":"a"}]}"#, .foreign), (#"{"aud":null}"#, .foreign),
  ]) func `the audience must be named`(payload: String, expected: TokenFault?) {
    #expect(fault(payload) { $0.audience = "a" } == expected)
  }

  @Test func `the audience may be the last of many`() {
    let others = String(repeating: #""b","#, count: 100)
    #expect(fault(#"{"aud":[\#(others)"a"]}"#) { $0.audience = "a" } == nil)
  }

  @Test func `the issuer must be the one that is demanded`() {
    #expect(fault(#"{"iss":"a"}"#) { $0.issuer = "a" } == nil)
    #expect(fault(#"{"iss":"b"}"#) { $0.issuer = "a" } == .foreign)
    #expect(fault("{}") { $0.issuer = "a" } == .foreign)
  }

  /// The caller of a request with a token of this payload.
  private func caller(
    _ payload: String, _ part: CallerPart, anonymous: CallerPolicy.Anonymous = .refuse
  ) throws -> Caller {
    var peer = CallerPeer(address: nil)
    peer.token = .verified(try read(payload).get())
    return try CallerPolicy(parts: [part], anonymous: anonymous).caller(head: Request().head, peer: peer)
  }

  @Test func `a claim is a caller together with its issuer`() throws {
    let one = try caller(#"{"iss":"a","sub":"x"}"#, .jwt("sub"))
    #expect(try caller(#"{"sub":"\u0078","iss":"a","exp":1000100}"#, .jwt("sub")) == one)
    let others = [#"{"sub":"x"}"#, #"{"iss":"b","sub":"x"}"#, #"{"iss":"a","sub":"y"}"#]
    for other in others { #expect(try caller(other, .jwt("sub")) != one) }
    #expect(try caller(#"{"iss":"a","a":{"b":12}}"#, .jwt("/a/b")) != one)
    // An operator finds the same.
    var policy = CallerPolicy(parts: [.jwt("sub")])
    #expect(try policy.caller(values: ["jwt:sub": "x", "jwt_issuer": "a"]) == one)
    #expect(try policy.caller(values: ["jwt:sub": "x"]) != one)
    policy.issuer = "a"
    #expect(try policy.caller(values: ["jwt:sub": "x"]) == one)
  }

  @Test(arguments: [CallerPolicy.Anonymous.refuse, .allow])
  func `a claim that cannot be read, or a token that is refused, is never anonymous`(
    anonymous: CallerPolicy.Anonymous
  ) throws {
    let part = CallerPart.jwt("sub")
    for payload in [#"{"sub":["a"]}"#, #"{"sub":1.5}"#, #"{"sub":"a","sub":"b"}"#] {
      #expect(throws: Problem.callerUnknown(.unreadable(part))) {
        try caller(payload, part, anonymous: anonymous)
      }
    }
    let policy = CallerPolicy(parts: [part], anonymous: anonymous)
    for fault in TokenFault.allCases {
      var peer = CallerPeer(address: nil)
      peer.token = .refused(fault)
      #expect(throws: Problem.callerUnknown(.token(fault))) {
        try policy.caller(head: Request().head, peer: peer)
      }
    }
    let empty = #"{"sub":""}"#
    if anonymous == .refuse {
      #expect(throws: Problem.callerUnknown(.missing(part))) { try caller(empty, part) }
    } else {
      #expect(try caller(empty, part, anonymous: .allow) == policy.caller(values: [:]))
    }
  }

  @Test(arguments: [
    ("Bearer abc", BearerToken.found(Array("abc".utf8))), ("BEARER \t abc", .found(Array("abc".utf8))),
    ("Bearer", .refused(.malformed)), ("Bearerabc", .refused(.otherScheme)),
    ("Basic abc", .refused(.otherScheme)),
    ("", .absent),
  ]) func `a bearer token is found`(value: String, expected: BearerToken) {
    #expect(Request(("Authorization", value)).head.bearerToken == expected)
  }

  @Test func `a second token is refused`() {
    #expect(Request().head.bearerToken == .absent)
    let twice = Request(("Authorization", "Bearer a"), ("authorization", "Bearer a"))
    #expect(twice.head.bearerToken == .refused(.repeated))
  }
}

struct CompactTokenTests {
  /// `{"alg":"ES256","kid":"k"}` and `{"a":"b?>"}`.
  private static let header = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ"
  private static let payload = "eyJhIjoiYj8-In0"

  @Test func `a token is taken apart`() throws {
    let text = "\(Self.header).\(Self.payload).AQID"
    let token = try #require(CompactToken(Array(text.utf8)))
    #expect(token.algorithm == "ES256" && token.keyID == "k")
    #expect(token.payload == Array(#"{"a":"b?>"}"#.utf8))
    #expect(token.signature == [1, 2, 3])
    #expect(token.signed == Array("\(Self.header).\(Self.payload)".utf8))
  }

  @Test(arguments: [
    "", ".", "..", "\(header).\(payload)", "\(header).\(payload).AQID.x", "\(header).\(payload).A",
    "\(header).\(payload).AQ==", "\(header).\(payload).A+/A", "\(payload).\(payload).AQID",
    "e30.\(payload).AQID",
    // {"alg":"ES256","crit":["b64"]}, {"alg":5}, {"alg":"ES256","kid":5}
    "eyJhbGciOiJFUzI1NiIsImNyaXQiOlsiYjY0Il19.\(payload).AQID", "eyJhbGciOjV9.\(payload).AQID",
    "eyJhbGciOiJFUzI1NiIsImtpZCI6NX0.\(payload).AQID",
  ]) func `what is no token is refused`(text: String) {
    #expect(CompactToken(Array(text.utf8)) == nil)
  }
}
