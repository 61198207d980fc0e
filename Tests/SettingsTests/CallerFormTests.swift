import Idempotency
import Settings
import TestSupport
import Testing

/// The forms of a caller's parts.
struct CallerFormTests {
  private static let keys = "jwt: {verify: none}\n"

  private func file(_ parts: String, _ more: String = "") -> String {
    upstream + Self.keys + "routes: [{name: r, caller: {parts: [\(parts)]\(more)}}]\n"
  }

  @Test func `alternatives are read, shown, and read again`() throws {
    let settings = try load(file(#""jwt:sub | cookie:Sid | header:X-A", "query:a|b", address"#))
    let parts = try #require(settings.routes[0].caller?.parts)
    #expect(
      parts == [.either([.jwt("sub"), .cookie("Sid"), .header("x-a")]), .query("a|b"), .address])
    #expect(parts[0].text == "jwt:sub | cookie:Sid | header:x-a")
    #expect(
      try load(file(parts.map { "\"\($0.text)\"" }.joined(separator: ", "))).routes[0].caller?.parts == parts)
  }

  @Test(arguments: [
    ("jwt:sub|cookie:sid", #"must have one space on each side of |; write "jwt:sub | cookie:sid""#),
    ("jwt:sub| cookie:sid", #"must have one space on each side of |; write "jwt:sub | cookie:sid""#),
    ("header:A || header:B", #"must have one space on each side of |; write "header:A | header:B""#),
    ("header:A | | header:B", #"must have one space on each side of |; write "header:A | header:B""#),
    (
      "query:a|b|header:B | address",
      #"must have one space on each side of |; write "query:a|b | header:B | address""#
    ),
    ("jwt:sub | jwt:sub", "names jwt:sub twice; take one of them out"),
    (
      "address | jwt:sub",
      "has address, which nearly every request has, so that no later alternative counts; write it last"
    ),
    (
      "jwt:sub | sid",
      "must be \(callerForms); did you "
        + "mean header:sid?"
    ),
    (
      (1...9).map { "query:p\($0)" }.joined(separator: " | "), "must have 8 alternatives at most"
    ),
  ])
  func `alternatives of another form are refused`(part: String, message: String) {
    #expect(issues(file("\"\(part)\"")) == ["3:37: routes[0].caller.parts[0]: \(message)"])
  }

  @Test func `optional parts are read, shown, and read again`() throws {
    let text =
      #""header:Authorization", "header?:Stripe-Account", "cookie?:a", "query?:b?:c", "json?:/d", "jwt?:sub""#
    let parts = try #require(try load(file(text)).routes[0].caller?.parts)
    let optional: [CallerPart] = [
      .header("stripe-account"), .cookie("a"), .query("b?:c"), .json("/d"), .jwt("sub"),
    ]
    #expect(parts == [.header("authorization")] + optional.map { .optional($0) })
    #expect(parts[1].text == "header?:stripe-account" && parts[3].text == "query?:b?:c")
    #expect(
      try load(file(parts.map { "\"\($0.text)\"" }.joined(separator: ", "))).routes[0].caller?.parts == parts)
  }

  @Test(arguments: [
    (
      #""client_certificate?:san""#, 37, "caller.parts[0]",
      "cannot be optional, which is for header?:, cookie?:, query?:, json?: or jwt?:; take the question mark out"
    ),
    (
      #""jwt:sub | cookie?:sid""#, 37, "caller.parts[0]",
      "has the optional part cookie?:sid among alternatives; take its question mark out"
    ),
    (
      #""header?:X-Org", "query?:a""#, 36, "caller.parts",
      "has optional parts alone, so that all clients without them would be one caller; add one that every request "
        + "has, such as header:Authorization, or write header:x-org"
    ),
    (
      #""header:X-Org", "header?:X-Org""#, 36, "caller.parts",
      "has header:x-org beside the same part as an optional one; take one of them out"
    ),
  ])
  func `optional parts of another form are refused`(
    parts: String, column: Int, member: String, message: String
  ) {
    #expect(issues(file(parts)) == ["3:\(column): routes[0].\(member): \(message)"])
  }

  @Test func `tokens in other places are read, shown, and read again`() throws {
    let text =
      #""jwt:sub | jwt:/a/b@cookie:Session | jwt:sub@header:X-Access-Token", "jwt?:org@cookie:o", "jwt:a@b""#
    let parts = try #require(try load(file(text)).routes[0].caller?.parts)
    #expect(
      parts == [
        .either([
          .jwt("sub"), .jwt("/a/b", at: .cookie("Session")), .jwt("sub", at: .header("x-access-token")),
        ]), .optional(.jwt("org", at: .cookie("o"))), .jwt("a@b"),
      ])
    #expect(parts[1].text == "jwt?:org@cookie:o" && parts[1].isOfToken)
    #expect(
      try load(file(parts.map { "\"\($0.text)\"" }.joined(separator: ", "))).routes[0].caller?.parts == parts)
    // A namespace remembers them.
    let known = KnownConfiguration(try load(file(text)))
    let remembered = NamespaceRegister.judge(known, in: nil).text
    let other = KnownConfiguration(try load(file(text.replacing("cookie:o", with: "cookie:p"))))
    for (own, changes) in [(known, []), (other, ["routes[0].caller"])] {
      let judgement = NamespaceRegister.judge(own, in: remembered)
      #expect(judgement.members == changes)
    }
  }

  @Test(arguments: [
    ("jwt:@cookie:a", "must name a claim of the token, such as jwt:sub@cookie:a"),
    ("jwt:sub@cookie:", "must name the token's cookie, such as jwt:sub@cookie:session"),
    ("jwt:sub@header:a b", "must name a header field, such as X-Request-Id"),
    ("jwt:sub@header:Authorization", "has the token where it is by default; write jwt:sub"),
    (
      "jwt:sub@query:token",
      "must have its token in a cookie or a header field: jwt:sub@cookie:NAME or jwt:sub@header:NAME"
    ),
  ])
  func `tokens in places that carry none are refused`(part: String, message: String) {
    #expect(issues(file("\"\(part)\"")) == ["3:37: routes[0].caller.parts[0]: \(message)"])
  }

  @Test func `credentials of one scheme are read, and warned of where they alone say who calls`() throws {
    for (text, part, proof) in [
      ("basic:user", CallerPart.basicUser, "header:Authorization or jwt:sub"),
      ("sigv4:access_key", .signingKey, "address or client_certificate"),
    ] {
      let alone = try load(file("\"\(text)\""))
      #expect(alone.routes[0].caller?.parts == [part] && part.text == text)
      #expect(
        alone.ownWarnings.map(\.description).count {
          $0.contains("has no part that is a credential (\(text))") && $0.hasSuffix("such as \(proof)")
        } == 1)
      let both = try load(file("\"\(text)\", \"header:X-Proof\""))
      #expect(!both.ownWarnings.map(\.description).contains { $0.contains("credential") })
    }
    #expect(issues(file("\"basic:password\"")).first?.contains("must be basic:user") == true)
    #expect(issues(file("\"sigv4:signature\"")).first?.contains("must be sigv4:access_key") == true)
  }

  @Test func `optional parts that cost money are warned of`() throws {
    func found(_ parts: String) throws -> [String] {
      try load(file(parts)).ownWarnings.map(\.description).filter { $0.contains("routes[0].caller") }
    }
    #expect(try found(#""header:Authorization", "header?:Stripe-Account""#).isEmpty)
    for (parts, text) in [
      (#""header:X-Device", "cookie?:cart""#, "has the optional part cookie?:cart: where a client signs in"),
      (#""header:X-Device", "jwt?:sub""#, "has the optional part jwt?:sub: where a client signs in"),
      (#""header:X-Device", "header?:Authorization""#, "has the optional part header?:authorization: where"),
      (#""header:X-Device", "header?:X-Request-Id""#, "has the part header:x-request-id, which is commonly"),
      (#""header:User-Agent", "header?:X-Org""#, "has no part but header:user-agent and header?:x-org"),
    ] {
      #expect(try found(parts).count { $0.contains(text) } == 1, "\(parts)")
    }
  }

  @Test func `the profile of Stripe hints at connected accounts`() throws {
    func found(_ parts: String, _ profile: String) throws -> Int {
      let text = upstream + "routes: [{name: r, caller: {parts: [\(parts)]}, profile: \(profile)}]\n"
      return try load(text).ownWarnings.map(\.description).count {
        $0.contains("routes[0].caller: lacks the caller's part header?:Stripe-Account")
      }
    }
    #expect(try found(#""header:Authorization""#, "stripe") == 1)
    #expect(try found(#""header:Authorization""#, "ietf") == 0)
    for part in ["header:Stripe-Account", "header?:Stripe-Account"] {
      #expect(try found("\"header:Authorization\", \"\(part)\"", "stripe") == 0)
    }
  }

  @Test func `alternatives that cost money are warned of`() throws {
    func found(_ parts: String) throws -> [String] {
      try load(file(parts)).ownWarnings.map(\.description).filter { $0.contains("routes[0].caller") }
    }
    #expect(try found(#""header:X-Api-Key | header:X-Account""#).isEmpty)
    #expect(try found(#""basic:user | sigv4:access_key | jwt:sub", "header:X-Proof""#).isEmpty)
    // One doubt about one part is one warning.
    for parts in [
      #""cookie:sid | jwt:sub""#, #""header:Authorization | cookie:sid""#, #""jwt:sub | cookie:sid""#,
      #""jwt:sub | header:Authorization""#,
    ] {
      #expect(try found(parts).count == 1, "\(parts)")
    }
    for (parts, text) in [
      (
        #""jwt:sub | cookie:sid""#,
        "takes cookie:sid where jwt:sub is missing: where a client signs in, or leaves an"
      ),
      (#""jwt:sub | address""#, "takes address where jwt:sub is missing: where a client signs in"),
      (#""jwt:sub | header:X-Account""#, "takes header:x-account where jwt:sub is missing: where a client"),
      (
        #""jwt:sub | header:Authorization""#,
        "takes header:authorization where jwt:sub is not found: a token without that counts whole"
      ),
      (
        #""basic:user | header:Authorization""#,
        "takes header:authorization where basic:user is not found: a token without that counts whole"
      ),
      (#""cookie:sid | jwt:sub""#, "takes cookie:sid before jwt:sub: where a client refreshes the former"),
      (
        #""header:Authorization | cookie:sid""#,
        "its only part is header:authorization | cookie:sid: where a client"
      ),
      (#""jwt:sub | jwt:jti""#, "has the part jwt:jti, which is different in each token"),
      (#""jwt:sub | header:X-Request-Id""#, "has the part header:x-request-id, which is commonly different"),
      (
        #""jwt:sub | header:User-Agent""#,
        "has no part but jwt:sub | header:user-agent, of which many clients"
      ),
      (#""jwt:sub | query:account""#, "has no part that is a credential (jwt:sub | query:account)"),
      (
        #""jwt:sub | header:Idempotency-Key""#,
        "its only part is header:idempotency-key, which carries the key"
      ),
    ] {
      #expect(try found(parts).count { $0.contains(text) } == 1, "\(parts)")
    }
  }

  @Test func `alternatives need what their parts need`() throws {
    let text = upstream + "routes: [{name: r, caller: {parts: [\"cookie:sid | jwt:sub\"]}}]\n"
    #expect(issues(text).count == 1)
    #expect(issues(text).allSatisfy { $0.contains("nothing says how tokens are verified") })
    let schemes = file(#""header:Authorization | cookie:sid""#, ", schemes: [GNAP]")
    #expect(issues(schemes).isEmpty)
  }

  @Test func `keys that name nothing are refused by default, and a route that takes them is warned of`()
    throws
  {
    let warned = "routes[0].key: takes keys that name nothing (placeholders: accept)"
    let accepting = try load(route("key: {placeholders: accept}"))
    #expect(accepting.routes[0].key.placeholders == .accept)
    #expect(accepting.ownWarnings.map(\.description).count { $0.contains(warned) } == 1)
    let plain = try load(route("key: {format: any}"))
    #expect(plain.routes[0].key.placeholders == .refuse)
    #expect(!plain.ownWarnings.map(\.description).contains { $0.contains("placeholders") })
    #expect(issues(route("key: {placeholders: none}")).first?.contains("must be refuse or accept") == true)
  }

  @Test func `an alternative that is added is a change, since callers may once have been anonymous`() throws {
    func judge(_ parts: String, _ anonymous: String, in text: String?) throws -> NamespaceRegister.Judgement {
      NamespaceRegister.judge(
        KnownConfiguration(try load(file(parts, ", anonymous: \(anonymous)"))), in: text)
    }
    let (one, two) = (#""jwt:sub""#, #""jwt:sub | cookie:sid""#)
    let allowed = try #require(try judge(one, "allow", in: nil).text)
    let refused = try judge(one, "refuse", in: allowed)
    #expect(refused.change == nil)
    // An earlier version did not remember who may be anonymous.
    let earlier = allowed.replacing(#""anonymous":"allow","#, with: "")
    #expect(earlier != allowed)
    for text in [allowed, try #require(refused.text), earlier] {
      #expect(try judge(two, "refuse", in: text).members == ["routes[0].caller"])
      #expect(try judge(one, "refuse", in: text).change == nil)
    }
  }
}
