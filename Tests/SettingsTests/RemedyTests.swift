import TestSupport
import Testing

/// Plausible mistakes, each with what to write in its place.
struct RemedyTests {
  private static let header = "must be header:NAME, query:NAME, json:/pointer, form:NAME or payload"
  private static let part =
    "must be \(callerForms)"

  @Test(arguments: [
    ("jwt: sub", "jwt:sub"), ("jwt:sub ", "jwt:sub"), (#"jwt:\tsub"#, "jwt:sub"), ("cookie: s", "cookie:s"),
    ("header: X-A", "header:X-A"), ("query: a ", "query:a"), ("json: /a", "json:/a"), ("json:/a ", "json:/a"),
    ("client_certificate: san", "client_certificate:san"),
  ]) func `a part of the caller has no space around its name`(text: String, plain: String) {
    #expect(
      issues(upstream + "routes: [{name: r, caller: {parts: [\"\(text)\"]}}]") == [
        "2:37: routes[0].caller.parts[0]: \(Self.space(plain))"
      ])
  }

  @Test(arguments: [
    ("header: X-A", "header:X-A"), ("query:a ", "query:a"), ("json: /a", "json:/a"), ("form: a", "form:a"),
  ]) func `a source of the key has no space around its name`(text: String, plain: String) {
    #expect(
      issues(route("key: {from: [\"\(text)\"]}")) == [
        "2:61: routes[0].key.from[0]: \(Self.space(plain))"
      ])
    #expect(
      issues(route("key: {from: [[\"\(text)\", \"query:z\"]]}")) == [
        "2:62: routes[0].key.from[0][0]: \(Self.space(plain))"
      ])
  }

  private static func space(_ plain: String) -> String {
    "must have no space around what follows the colon; write \(plain)"
  }

  @Test(arguments: [
    ("\"jwt: \"", "must name a claim of the token, such as jwt:sub"), ("\"user: x\"", part),
    ("Authorization", "\(part); did you mean header:Authorization?"),
    ("adress", "\(part); did you mean address?"), ("jwt", part), ("\"a b\"", part),
  ]) func `a part of no form is refused with the likely one`(text: String, message: String) {
    #expect(
      issues(upstream + "routes: [{name: r, caller: {parts: [\(text)]}}]") == [
        "2:37: routes[0].caller.parts[0]: \(message)"
      ])
  }

  @Test(arguments: [
    ("Idempotency-Key", "\(header); did you mean header:Idempotency-Key?"), ("header", header),
    ("Payload", "\(header); did you mean payload?"), ("/id", header), ("\"query: \"", header),
  ]) func `a source of no form is refused with the likely one`(text: String, message: String) {
    #expect(issues(route("key: {from: [\(text)]}")) == ["2:61: routes[0].key.from[0]: \(message)"])
  }

  @Test(arguments: [
    ("0.0.0.0:1", "127.0.0.1:1", true), ("127.0.0.1:1", "0.0.0.0:1", true), ("[::]:1", "127.0.0.1:1", true),
    ("127.0.0.1:1", "[::]:1", true), ("[::]:1", "0.0.0.0:1", true), ("[::]:1", "[::1]:1", true),
    ("[::]:1", "localhost:1", true), ("[::1]:1", "[0:0::1]:1", true), ("localhost:1", "Localhost:1", true),
    ("0.0.0.0:1", "127.0.0.1:2", false), ("0.0.0.0:0", "127.0.0.1:0", false),
    ("0.0.0.0:0", "0.0.0.0:0", false), ("0.0.0.0:1", "[::1]:1", false), ("127.0.0.1:1", "[::1]:1", false),
    ("127.0.0.1:1", "127.0.0.2:1", false), ("0.0.0.0:1", "localhost:1", false),
  ]) func `two listeners have no address in common`(first: String, second: String, isRefused: Bool) {
    let found = issues(upstream + "listen: [{address: \"\(first)\"}, {address: \"\(second)\"}]")
    let message =
      "listen[1].address: cannot be beside listen[0].address, \(first), which has its port and an address in "
      + "common; write another port"
    #expect(found.map { $0.hasSuffix(message) } == (isRefused ? [true] : []), "\(found)")
  }

  @Test func `operators have no address of a wildcard for clients`() {
    let listen = "listen: [{address: \"0.0.0.0:1\"}]\n"
    #expect(
      issues(upstream + listen + "admin: {address: \"127.0.0.1:1\"}") == [
        "3:18: admin.address: cannot be beside listen[0].address, 0.0.0.0:1, which has its port and an address in "
          + "common; write another port"
      ])
    #expect(issues(upstream + listen + "admin: {address: \"127.0.0.1:2\"}").isEmpty)
  }

  @Test func `the host and the port of a Redis belong in a URL or a list`() {
    let url = "write store.url: redis://HOST:PORT/0"
    #expect(
      issues(upstream + "store: {kind: redis, host: localhost, port: 6379}") == [
        "2:8: store.url: is missing: write redis://host:port/0, rediss://host:port/0 or unix:/path",
        "2:22: store.host: is no member; \(url)", "2:39: store.port: is no member; \(url)",
      ])
    #expect(
      issues(upstream + "store: {host: localhost}") == [
        "2:9: store.host: is no member; for a Redis write kind: redis and \(url)"
      ])
    for more in ["cluster, nodes: [h]", "sentinel, master_name: m, nodes: [h]"] {
      #expect(
        issues(upstream + "store: {kind: redis, port: 1, topology: \(more)}") == [
          "2:22: store.port: is no member; write HOST:PORT in nodes"
        ])
    }
  }

  @Test func `a member of another section that is near one of this is taken for it, too`() {
    #expect(
      issues(upstream + "upstream: backend") == [
        "2:1: upstream: unknown member; it belongs to a route; did you mean upstreams?"
      ])
  }

  @Test(arguments: ["", "/"]) func `a directory is no database`(end: String) {
    let directory = TemporaryDirectory()
    #expect(
      issues(upstream + "store: {path: \"\(directory.path)\(end)\"}") == [
        "2:15: store.path: names a directory; name a file in it, such as \(directory.file("semel.db"))"
      ])
    #expect(issues(upstream + "store: {path: \"\(directory.file("semel.db"))\"}").isEmpty)
  }
}
