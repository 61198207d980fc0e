import Testing

@testable import Idempotency

/// Tokens in `Authorization`, in other fields and in cookies.
struct TokenPlaceTests {
  private static let token = BearerToken.found(Array("a.b.c".utf8))

  @Test(arguments: [
    ("a.b.c", token), ("Bearer a.b.c", token), ("dpop \t a.b.c", token), ("", .absent),
    ("Bearer ", .found(Array("Bearer".utf8))), ("Basic a", .refused(.otherScheme)),
  ])
  func `a field has the token alone, or behind one of two schemes`(value: String, expected: BearerToken) {
    let head = Request(("X-Access-Token", value.trimmed)).head
    #expect(head.token(at: .header("x-access-token")) == expected)
    #expect(head.token(at: .header("x-other")) == .absent && head.bearerToken == .absent)
  }

  @Test(arguments: [
    ("a.b.c", token), (#""a.b.c""#, token), (#""Bearer a.b.c""#, token), ("Bearer%20a.b.c", token),
    (#""""#, .absent), ("", .absent), ("Basic%20a", .refused(.otherScheme)),
    ("a%b", .found(Array("a%b".utf8))),
    (#"""#, .found(Array(#"""#.utf8))),
  ])
  func `a cookie has the token as frameworks write it`(value: String, expected: BearerToken) {
    let head = Request(("Cookie", "x=1; session=\(value); y=2")).head
    #expect(head.token(at: .cookie("session")) == expected)
    #expect(head.token(at: .cookie("other")) == .absent)
  }

  @Test func `a second token in a place is refused`() {
    let fields = Request(("X-T", "a"), ("x-t", "a")).head
    #expect(fields.token(at: .header("x-t")) == .refused(.repeated))
    #expect(Request(("Cookie", "t=a; t=a")).head.token(at: .cookie("t")) == .refused(.repeated))
  }

  private static let cookie = CallerPart.jwt("sub", at: .cookie("session"))

  private func peer(_ readings: [(TokenPlace, TokenReading)]) -> CallerPeer {
    var peer = CallerPeer(address: nil)
    for (place, reading) in readings { peer.set(reading, at: place) }
    return peer
  }

  private func verified(_ subject: String) -> TokenReading {
    let claim = VerifiedToken.Claim.text(.framed(issuer: [], value: Array(subject.utf8)))
    return .verified(VerifiedToken(claims: ["sub": claim], endsAt: nil))
  }

  private func caller(_ parts: [CallerPart], _ readings: (TokenPlace, TokenReading)...) throws -> Caller {
    try CallerPolicy(parts: parts).caller(head: Request().head, peer: peer(readings))
  }

  @Test func `a claim is read from the token of its place`() throws {
    let place = TokenPlace.cookie("session")
    let alice = try caller([Self.cookie], (place, verified("alice")), (.authorization, verified("bob")))
    #expect(try caller([Self.cookie], (place, verified("alice"))) == alice)
    #expect(try caller([Self.cookie], (place, verified("bob"))) != alice)
    // The place is a part of the caller, as that of any other part is.
    #expect(try caller([.jwt("sub")], (.authorization, verified("alice"))) != alice)
    #expect(throws: Problem.callerUnknown(.missing(Self.cookie))) {
      try caller([Self.cookie], (.authorization, verified("alice")))
    }
    #expect(
      try CallerPolicy(parts: [Self.cookie]).caller(values: ["jwt:sub@cookie:session": "alice"]) == alice)
    let field = CallerPart.jwt("sub", at: .header("x-t"))
    #expect(
      try CallerPolicy(parts: [field]).caller(values: ["jwt:sub@header:X-T": "alice"])
        == caller([field], (.header("x-t"), verified("alice"))))
  }

  @Test func `of tokens in two places the first counts that is there, unless it is refused`() throws {
    let either = CallerPart.either([.jwt("sub"), Self.cookie])
    let place = TokenPlace.cookie("session")
    let alice = try caller([.jwt("sub")], (.authorization, verified("alice")))
    #expect(try caller([either], (.authorization, verified("alice")), (place, verified("bob"))) == alice)
    #expect(try caller([either], (place, verified("bob"))) == caller([Self.cookie], (place, verified("bob"))))
    #expect(throws: Problem.callerUnknown(.token(.expired))) {
      try caller([either], (.authorization, .refused(.expired)), (place, verified("bob")))
    }
    let route = Route.sample { $0.caller = CallerPolicy(parts: [either, .jwt("org"), Self.cookie]) }
    #expect(route.tokenPlaces == [.authorization, place])
    #expect(route.identifyingFields.contains("cookie") && route.identifyingFields.contains("authorization"))
  }

  @Test func `a fault is that of the token's place`() {
    let place = TokenPlace.cookie("session")
    let problem = Problem.callerUnknown(.token(.repeated, at: place))
    #expect(problem.detail == "Send the cookie session once; this request has it more than once.")
    #expect(CallerFault.token(.expired, at: place).challenge == nil)
    #expect(CallerFault.token(.expired).challenge == #"Bearer error="invalid_token""#)
    #expect(
      !CallerFault.token(.otherScheme, at: place).isOfScheme && CallerFault.token(.otherScheme).isOfScheme)
    #expect(
      Problem.callerUnknown(.token(.otherScheme, at: .header("x-t"))).detail
        == "Send a bearer token in the x-t header field; this one has another scheme.")
    let missing = Problem.callerUnknown(.missing(Self.cookie))
    #expect(missing.detail.contains("a token with the claim sub in the cookie session"))
    #expect(Problem.callerUnknown(.token(.keysMissing, at: place)).isRetryable)
  }
}

extension String {
  /// The text as the value of a field, without white space at its ends.
  fileprivate var trimmed: String {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
