import Foundation
import Idempotency
import Settings
import TestSupport
import Testing

/// The settings by which tokens are verified.
struct JWTTests {
  private let directory = TemporaryDirectory()
  private static let routes = "routes: [{name: r, caller: {parts: [\"jwt:sub\"]}}]\n"

  private func file(_ name: String, _ text: String) throws -> String {
    let path = directory.file(name)
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  private func jwt(_ members: String) -> String { upstream + Self.routes + "jwt: {\(members)}\n" }

  @Test func `a part of a token needs keys`() {
    #expect(
      issues(upstream + Self.routes) == [
        "2:28: routes[0].caller: has the part jwt:sub, but nothing says how tokens are verified: write "
          + "jwt: {jwks_file: jwks.json} at the top, or another of its sources"
      ])
    #expect(
      issues(jwt("")) == [
        "3:6: jwt.jwks_file: is missing: name the keys by jwks_file, jwks_url or hmac_secret_file, or write "
          + "verify: none where a gateway in front verifies tokens"
      ])
    #expect(
      issues(jwt("jwks_url: \"https://id/keys\", verify: none")) == [
        "3:44: jwt.verify: contradicts jwks_url: one of them says who verifies tokens; take the other out"
      ])
  }

  @Test func `a key set in a file has all algorithms of public keys by default`() throws {
    let path = try file("set.json", #"{"keys":[{"kty":"oct"},{"kty":"EC"}]}"#)
    let settings = try load(jwt("jwks_file: \"\(path)\", audience: a, issuer: \"https://id\""))
    let jwt = try #require(settings.jwt)
    #expect(jwt.keys == .file(path))
    #expect(jwt.rules.issuer == "https://id" && jwt.rules.audience == "a" && jwt.rules.leeway == 30_000)
    #expect(
      jwt.rules.algorithms.map(\.rawValue)
        == ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"])
    #expect(settings.routes[0].caller?.parts == [.jwt("sub")])
    #expect(settings.routes[0].caller?.issuer == "https://id")
    #expect(settings.warnings.isEmpty)
    #expect(
      settings.shownJSON.contains(#""jwt":{"jwks_file":"\#(path)","issuer":"https://id","audience":"a""#))
  }

  @Test(arguments: [
    ("jwks_file: none.json", "3:18: jwt.jwks_file: names none.json, which does not exist"),
    (
      "jwks_url: \"ftp://id\"",
      "3:17: jwt.jwks_url: must be an http or https URL, such as https://id.example.com/.well-known/jwks.json"
    ),
    (
      "jwks_url: \"https://u:p@id/\"",
      "3:17: jwt.jwks_url: must have no user and password: a key set is public"
    ),
    ("hmac_secret_file: none", "3:25: jwt.hmac_secret_file: names none, which does not exist"),
    ("verify: signature", "3:15: jwt.verify: must be none"),
    (
      "verify: none, algorithms: [RS256]",
      "3:33: jwt.algorithms: has no effect with verify: none; take one of them out"
    ),
    ("verify: none, leeway: 1h", "3:29: jwt.leeway: must be at most 10m"),
    ("verify: none, issuer: \"\"", "3:29: jwt.issuer: must not be empty: write the issuer of the tokens"),
  ]) func `what cannot be is refused in its place`(members: String, issue: String) {
    #expect(issues(jwt(members)) == [issue])
  }

  @Test func `algorithms are those of the keys`() throws {
    let url = "jwks_url: \"https://id/\", algorithms: "
    #expect(try load(jwt(url + "[ES256]")).jwt?.rules.algorithms == [.es256])
    for (algorithm, part) in [
      ("none", "would accept tokens of anybody"), ("None", "would accept tokens of anybody"),
      ("HS256", "is for another kind of keys than these: with it a public key could pass for a secret"),
      ("RS1", "must be RS256, RS384"),
    ] {
      let issues = issues(jwt(url + "[\(algorithm)]"))
      #expect(issues.count == 1 && issues[0].hasPrefix("3:45: jwt.algorithms[0]: \(part)"), "\(issues)")
    }
    #expect(issues(jwt(url + "[]")).count == 1)
    let secret = try file("secret", String(repeating: "s", count: 50) + "\n")
    let hmac = "hmac_secret_file: \"\(secret)\""
    #expect(try load(jwt(hmac)).jwt?.rules.algorithms == [.hs256, .hs384])
    let long = issues(jwt(hmac + ", algorithms: [HS512]"))
    #expect(long.count == 1 && long[0].contains("needs a secret of at least 64 bytes"), "\(long)")
    let open = issues(jwt(hmac + ", algorithms: [RS256]"))
    #expect(open.count == 1 && open[0].contains("is for another kind of keys than these"), "\(open)")
    let short = try file("short", String(repeating: "s", count: 31))
    #expect(issues(jwt("hmac_secret_file: \"\(short)\""))[0].contains("has less than 32 bytes"))
    let empty = try file("empty.json", #"{"keys":[{"kty":"oct"}]}"#)
    #expect(issues(jwt("jwks_file: \"\(empty)\""))[0].contains("is no JWK set with public keys"))
    let pipe = directory.path + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    #expect(issues(jwt("jwks_file: \"\(pipe)\""))[0].contains("which is a pipe"))
  }

  @Test(arguments: [
    ("jwks_url: \"https://id/\"", "names no audience"),
    ("jwks_url: \"http://id/\", audience: a", "is not secured by TLS"),
    ("verify: none", "accepts tokens that nobody has verified"),
  ]) func `what may be a mistake is warned of`(members: String, part: String) throws {
    let warnings = try load(jwt(members)).warnings.map(\.description)
    #expect(warnings.count == 1 && warnings[0].contains(part), "\(warnings)")
  }

  @Test(arguments: [
    "jwks_url: \"http://127.0.0.1:1/\", audience: a", "jwks_url: \"http://[::1]/k\", audience: a",
  ])
  func `a key set on loopback needs no TLS`(members: String) throws {
    #expect(try load(jwt(members)).warnings.isEmpty)
  }

  @Test func `keys may change while Semel runs`() throws {
    let old = try load(jwt("jwks_url: \"https://id/\", audience: a"))
    let new = try load(jwt("jwks_url: \"https://other/\", audience: b"))
    #expect(ReloadPlan(from: old, to: new) == .apply)
  }
}
