import Foundation
import Idempotency
import JWTKit
import Logging
import TestSupport
import Testing
import Wire

@testable import Tokens

/// Tokens that the library itself has signed.
struct SignedTokensTests {
  private struct Payload: JWTPayload {
    var sub: String
    var exp: ExpirationClaim?

    func verify(using algorithm: some JWTAlgorithm) {}
  }

  /// Keys by name; the set that a source serves is changed by the test.
  private struct Issuer {
    let keys: [String: ES256PrivateKey] = ["a": ES256PrivateKey(), "b": ES256PrivateKey()]
    let document = Watched<String?>(nil)

    func token(_ key: String, sub: String = "alice") async throws -> [UInt8] {
      let collection = JWTKeyCollection()
      await collection.add(ecdsa: try #require(keys[key]), kid: JWKIdentifier(string: key))
      return Array(try await collection.sign(Payload(sub: sub), kid: JWKIdentifier(string: key)).utf8)
    }

    func serve(_ names: String..., more: String = "", members: String = "") throws {
      let entries = try names.map { name in
        let parameters = try #require(keys[name]?.parameters)
        func url(_ text: String) -> String {
          text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        return
          #"{"kty":"EC","crv":"P-256","kid":"\#(name)","x":"\#(url(parameters.x))","y":"\#(url(parameters.y))"\#(members)}"#
      }
      document.withValue {
        $0 = "{\"keys\":[\(([more].filter { !$0.isEmpty } + entries).joined(separator: ","))]}"
      }
    }

    func source() -> KeySetSource {
      KeySetSource(name: "https://id", isFile: false, logger: Logger(label: "test")) {
        [document] () throws(KeySetFault) in
        guard let text = document.value else { throw KeySetFault("it is away") }
        return Array(text.utf8)
      }
    }
  }

  private func tokens(_ source: KeySetSource, _ tally: TokenTally = TokenTally()) async -> SignedTokens {
    await SignedTokens(
      .source(source), rules: TokenRules(algorithms: [.es256]), claims: ["sub"], tally: tally)
  }

  @Test func `a token is known after its check, until the keys change`() async throws {
    let issuer = Issuer()
    let source = issuer.source()
    let tally = TokenTally()
    let tokens = await tokens(source, tally)
    try issuer.serve(
      "a",
      more: #"{"kty":"oct","k":"AAAA","kid":"secret"},{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"short"},7"#)
    source.renew()
    await source.settled()
    #expect(source.figures.keys == 1)
    let token = try await issuer.token("a")
    #expect(tokens.known(token) == nil)
    guard case .verified = tokens.check(token) else {
      Issue.record("not verified")
      return
    }
    #expect(tokens.known(token) != nil)
    #expect(tally.hitCount == 1 && tally.verifiedCount == 1)
    try issuer.serve("b")
    #expect(await source.awaitNewKeys(since: source.edition))
    #expect(tokens.known(token) == nil)
    #expect(tokens.check(token).fault == .untrusted)
  }

  @Test func `a token that was refused costs nothing for some seconds, unless the keys change`() async throws
  {
    let issuer = Issuer()
    let source = issuer.source()
    let tally = TokenTally()
    let tokens = await tokens(source, tally)
    try issuer.serve("a")
    source.renew()
    await source.settled()
    let token = try await issuer.token("b")
    let check = tokens.check(token)
    #expect(check.fault == .untrusted)
    // The key may be one that is about to be fetched.
    #expect(tokens.known(token) == nil)
    tokens.remember(check, of: token)
    guard case .refused(.untrusted)? = tokens.known(token) else {
      Issue.record("not remembered")
      return
    }
    #expect(tally.refusedCount(.untrusted) == 2)
    let ending = try await issuer.token("a")
    tokens.remember(.refused(.expired, edition: source.edition), of: ending)
    #expect(tokens.known(ending) == nil)
    let garbage = Array("garbage".utf8)
    tokens.remember(tokens.check(garbage), of: garbage)
    #expect(tokens.known(garbage) != nil)
    try issuer.serve("b")
    #expect(await source.awaitNewKeys(since: source.edition))
    #expect(tokens.known(token) == nil)
    guard case .verified = tokens.check(token) else {
      Issue.record("not verified")
      return
    }
  }

  @Test func `what older keys have refused is not remembered for newer ones`() async throws {
    let issuer = Issuer()
    let source = issuer.source()
    let tokens = await tokens(source)
    try issuer.serve("a")
    source.renew()
    await source.settled()
    let (token, stranger) = (try await issuer.token("b"), Array("stranger".utf8))
    let check = tokens.check(token)
    #expect(check.fault == .untrusted)
    try issuer.serve("b")
    #expect(await source.awaitNewKeys(since: source.edition))
    tokens.remember(tokens.check(stranger), of: stranger)
    tokens.remember(check, of: token)
    #expect(tokens.known(token) == nil)
    // Nor does it displace what the newer ones have refused.
    #expect(tokens.known(stranger) != nil)
  }

  @Test func `a token that names its key is cheaper to check than one that names none`() async throws {
    let issuer = Issuer()
    let source = issuer.source()
    let tokens = await tokens(source, TokenTally())
    try issuer.serve("a")
    source.renew()
    await source.settled()
    let named = tokens.cost(of: try await issuer.token("a"))
    #expect(named < tokens.cost(of: Array("no token".utf8)))
    #expect(tokens.cost(of: Array(repeating: UInt8(ascii: "a"), count: 60_000)) == tokens.cost(of: []))
  }

  @Test func `nobody waits for ever for a file system that hangs`() async {
    let gate = ScriptGate()
    let source = KeySetSource(
      name: "/mnt/keys.json", isFile: true, logger: Logger(label: "test"), maxWait: .milliseconds(50)
    ) { () throws(KeySetFault) in
      gate.pass()
      throw KeySetFault("it is away")
    }
    source.renew()
    await source.settled()
    #expect(source.figures.fetches == 0)
    #expect(await source.awaitNewKeys(since: source.edition) == false)
    gate.open()
    while source.figures.fetches == 0 { await Task.yield() }
    #expect(source.figures.failures == 1)
  }

  @Test func `a file that changes while it is read is read again`() async throws {
    let issuer = Issuer()
    let directory = TemporaryDirectory()
    let file = directory.file("keys.json")
    func serve(_ key: String, more: String = "") throws {
      try issuer.serve(key, more: more)
      try Data((issuer.document.value ?? "").utf8).write(to: URL(filePath: file))
    }
    let (loads, rest) = (Watched(0), ScriptGate())
    let source = KeySetSource(name: file, isFile: true, logger: Logger(label: "test")) {
      () throws(KeySetFault) in
      guard let bytes = try? Data(contentsOf: URL(filePath: file)) else { throw KeySetFault("it is away") }
      loads.withValue { $0 += 1 }
      rest.pass()
      return Array(bytes)
    }
    try serve("a")
    source.renew()
    try await loads.until("the first is read") { $0 == 1 ? true : nil }
    // Another size: the time of a file may have a coarse grain.
    try serve("b", more: "7")
    source.renew()
    rest.open()
    await source.settled()
    #expect(source.edition == 1)
    rest.open()
    source.renew()
    await source.settled()
    #expect(source.edition == 2 && loads.value == 2)
    source.renew()
    await source.settled()
    #expect(loads.value == 2)
  }

  @Test func `without keys a token has to wait for them`() async throws {
    let issuer = Issuer()
    let source = issuer.source()
    let tokens = await tokens(source)
    let token = try await issuer.token("a")
    source.renew()
    await source.settled()
    guard case .keyUnknown(.keysMissing, let edition) = tokens.check(token) else {
      Issue.record("not unknown")
      return
    }
    #expect(source.line == "jwt https://id: no keys; failing: it is away")
    try issuer.serve("a")
    #expect(await tokens.awaitNewKeys(since: edition))
    guard case .verified = tokens.check(token) else {
      Issue.record("not verified")
      return
    }
    // A key that no set has is looked for once.
    let stranger = try await issuer.token("b")
    #expect(tokens.check(stranger).fault == .untrusted)
    #expect(!(await tokens.awaitNewKeys(since: source.edition)))
    #expect(source.figures.fetches == 2)
  }

  @Test(arguments: [
    (#","use":"enc""#, false), (#","key_ops":["encrypt"]"#, false), (#","key_ops":["sign","verify"]"#, true),
    (#","use":"sig""#, true),
  ])
  func `a key that is not for signatures verifies none`(members: String, verifies: Bool) async throws {
    let issuer = Issuer()
    let source = issuer.source()
    let tokens = await tokens(source)
    try issuer.serve("a", members: members)
    source.renew()
    await source.settled()
    let check = tokens.check(try await issuer.token("a"))
    if case .verified = check { #expect(verifies) } else { #expect(!verifies) }
  }

  @Test func `a set that cannot be used leaves the last one in use`() async throws {
    let issuer = Issuer()
    let source = issuer.source()
    let tokens = await tokens(source)
    try issuer.serve("a")
    source.renew()
    await source.settled()
    issuer.document.withValue { $0 = #"{"keys":[{"kty":"oct","k":"AAAA","kid":"a"}]}"# }
    #expect(!(await tokens.awaitNewKeys(since: source.edition)))
    #expect(source.figures.failures == 1 && source.figures.keys == 1)
    guard case .verified = tokens.check(try await issuer.token("a")) else {
      Issue.record("not verified")
      return
    }
  }

  @Test func `a secret is for the algorithms that it is long enough for`() async throws {
    let secret = Secret(String(repeating: "s", count: 48))
    let keys = JWTKeyCollection()
    await keys.add(hmac: HMACKey(from: secret.revealed), digestAlgorithm: .sha384)
    let token = Array(try await keys.sign(Payload(sub: "alice")).utf8)
    for (algorithms, isAccepted) in [([TokenAlgorithm.hs384], true), ([.hs256], false), ([.hs512], false)] {
      let tokens = await SignedTokens(
        .secret(secret), rules: TokenRules(algorithms: algorithms), claims: ["sub"], tally: TokenTally())
      #expect((tokens.check(token).fault == nil) == isAccepted)
      #expect(!(await tokens.awaitNewKeys(since: 0)))
    }
  }
}

/// A cache of a test, in an object: an expectation cannot change a value.
private final class Cache {
  private var cache = TokenCache()

  var count: Int { cache.count }
  func find(_ digest: Digest256, edition: Int, now: Int64) -> VerifiedToken? {
    cache.find(digest, edition: edition, now: now)
  }
  func insert(_ digest: Digest256, _ token: VerifiedToken, edition: Int) {
    cache.insert(digest, token, edition: edition)
  }
}

struct TokenCacheTests {
  private let token: VerifiedToken

  init() throws { token = try TokenRules().read(Array(#"{"exp":100}"#.utf8), claims: [], now: 0).get() }

  private func digest(_ number: Int) -> Digest256 { .sha256(of: Array("\(number)".utf8)) }

  @Test func `a token is kept until it ends`() {
    let cache = Cache()
    cache.insert(digest(1), token, edition: 0)
    #expect(cache.find(digest(1), edition: 0, now: 129) != nil)
    #expect(cache.find(digest(1), edition: 0, now: 130) == nil)
    #expect(cache.find(digest(2), edition: 0, now: 0) == nil)
  }

  @Test func `other keys empty it, and what older keys have verified is not kept`() {
    let cache = Cache()
    cache.insert(digest(1), token, edition: 1)
    #expect(cache.find(digest(1), edition: 2, now: 0) == nil)
    cache.insert(digest(2), token, edition: 2)
    cache.insert(digest(3), token, edition: 1)
    #expect(cache.find(digest(3), edition: 2, now: 0) == nil)
    #expect(cache.count == 1)
  }

  @Test func `it is bounded, and keeps what is used`() {
    let cache = Cache()
    for number in 0..<40_000 {
      cache.insert(digest(number), token, edition: 0)
      #expect(cache.find(digest(0), edition: 0, now: 0) != nil)
    }
    #expect(cache.count <= 16_384)
    #expect(cache.find(digest(1), edition: 0, now: 0) == nil)
  }
}

extension TokenCheck {
  fileprivate var fault: TokenFault? {
    if case .refused(let fault) = reading { fault } else { nil }
  }
}
