import Idempotency
import Settings
import Testing

/// `fingerprint.ignore` and `fingerprint.only`.
struct PayloadSettingsTests {
  private func recipe(_ fingerprint: String) throws -> Recipe {
    try load(route("fingerprint: \(fingerprint)")).routes[0].recipe
  }

  @Test func `parts of payloads are read`() throws {
    let ignore = #"{ignore: [/a/*/b, "query:t s", "form:_csrf", "part:token", part-filename]}"#
    #expect(
      try recipe(ignore).ignore == [
        .json("/a/*/b"), .query("t s"), .form("_csrf"), .part("token"), .fileNames,
      ])
    let only = try recipe(#"{only: ["/a: b", "query:id", "form:amount", "part:file"]}"#)
    #expect(
      only.only == [.json("/a: b"), .query("id"), .form("amount"), .part("file")] && only.ignore.isEmpty)
    #expect(try recipe("{body: none, ignore: [\"query:t\"]}") == Recipe(body: .none, ignore: [.query("t")]))
    #expect(try recipe("{body: raw, only: [\"query:t\"]}") == Recipe(body: .raw, only: [.query("t")]))
    // The limit of a content stays that of bodies.
    let limited = try load(route("fingerprint: {only: [/a]}, max_request_body: 2MiB")).routes[0].recipe
    #expect(limited == Recipe(only: [.json("/a")], contentLimit: 2 << 20))
  }

  private static let forms = "/pointer, query:NAME, form:NAME or part:NAME"

  @Test(arguments: [
    (
      "{ignore: [sent_at]}",
      "ignore[0]: must be \(forms.replacing(" or ", with: ", ")) or part-filename; did you mean /sent_at?"
    ),
    ("{only: [\"json:/id\"]}", "only[0]: must be \(forms)"),
    ("{only: [\"query:\"]}", "only[0]: must be \(forms)"),
    ("{only: [\"form: a\"]}", "only[0]: must have no space around what follows the colon; write form:a"),
    (
      "{only: [part-filename]}",
      "only[0]: is for ignore alone; name the part that counts, such as part:document"
    ),
    ("{only: [/a, /a]}", "only[1]: is given twice, first in line 2; take one of them out"),
    ("{body: none, only: [/a]}", "only: is for body: auto alone; take it out, or write body: auto"),
    (
      "{body: raw, ignore: [part-filename]}",
      "ignore: is for body: auto alone; take it out, or write body: auto"
    ),
    (
      "{ignore: [/a], only: [/b]}",
      "only: cannot be combined with ignore, since what only does not name is left out already; take one of them out"
    ),
    (
      "{ignore: [/a/*/b, /a/0/c]}",
      "ignore: leads through one array by * and by an index (/a/*/b and /a/0/c); write * in both, or indices alone"
    ),
  ])
  func `a fault is refused with the right form`(fingerprint: String, message: String) {
    let found = issues(route("fingerprint: \(fingerprint)"))
    #expect(found.count == 1 && found[0].hasSuffix(": routes[0].fingerprint.\(message)"), "\(found)")
  }

  @Test func `a list of a route takes the place of the other one of the defaults`() throws {
    let settings = try load(
      upstream + """
        defaults: {caller: {parts: [address]}, fingerprint: {ignore: [/a], headers: [x-b]}}
        routes:
          - {name: a, match: {path: /a}, fingerprint: {only: [/b]}}
          - {name: b, match: {path: /b}, fingerprint: {body: auto}}
        """)
    #expect(settings.routes[0].recipe == Recipe(headers: ["x-b"], only: [.json("/b")]))
    #expect(settings.routes[1].recipe == Recipe(headers: ["x-b"], ignore: [.json("/a")]))
  }

  private func warnings(_ members: String) throws -> [String] {
    try load(route(members)).ownWarnings.map(\.description).filter {
      $0.contains("fingerprint") || $0.contains("key:")
    }
  }

  @Test(arguments: [
    ("{only: [\"query:id\"]}", "names nothing of the body in only (query:id), so that no body counts"),
    ("{ignore: [\"query:Action\"]}", "leaves query:Action out, which commonly names the operation"),
    ("{ignore: [\"form:op\"]}", "leaves form:op out, which commonly names the operation"),
    ("{ignore: [/method]}", "leaves /method out, which commonly names the operation"),
    ("{ignore: [/items/*]}", "leaves /items/* out, and elements of an array cannot be left out"),
    (
      "{only: [/id, /meta/timestamp]}",
      "lists /meta/timestamp in only, which is commonly different in each delivery"
    ),
  ])
  func `a list that costs money, or does nothing, is warned of`(fingerprint: String, text: String) throws {
    let found = try warnings("match: {methods: [POST]}, fingerprint: \(fingerprint)")
    #expect(found.count == 1 && found[0].contains("routes[0].fingerprint: \(text)"), "\(found)")
  }

  @Test func `a list that does what it says is not warned of`() throws {
    for fingerprint in [
      "{only: [/id]}", "{body: none, only: [\"query:id\"]}",
      "{ignore: [\"query:timestamp\", /meta/method, /a/*/b]}",
    ] {
      #expect(try warnings("match: {methods: [POST]}, fingerprint: \(fingerprint)").isEmpty)
    }
    #expect(try warnings("match: {methods: [DELETE]}, fingerprint: {only: [\"query:id\"]}").isEmpty)
    let keys = try warnings(
      "match: {methods: [DELETE]}, key: {from: [payload]}, fingerprint: {only: [\"query:id\"]}")
    #expect(keys.count == 1 && keys[0].contains("fingerprint.only leaves the body out"), "\(keys)")
  }

  @Test(arguments: [
    ("{ignore: [/a]}", "{ignore: [/a]}", []),
    ("{ignore: [/a]}", "{ignore: [/a, /b]}", ["routes[0].fingerprint"]),
    ("{ignore: [/a]}", "{only: [/a]}", ["routes[0].fingerprint"]),
    ("{ignore: [/a, \"query:t\"]}", "{ignore: [/a]}", ["routes[0].fingerprint"]),
    ("{only: [/a]}", "{only: [/a]}, max_request_body: 2MiB", []),
  ])
  func `a change is one of identity only where the payload is the key`(
    before: String, after: String, members: [String]
  ) throws {
    func settings(_ key: String, _ fingerprint: String) throws -> Settings {
      try load(route("key: {from: [\(key)]}, fingerprint: \(fingerprint)"))
    }
    #expect(
      reloadVerdict(from: try settings("\"header:K\"", before), to: try settings("\"header:K\"", after))
        == .apply)
    let (old, new) = (try settings("payload", before), try settings("payload", after))
    let remembered = NamespaceRegister.judge(KnownConfiguration(old), in: nil).text
    let judgement = NamespaceRegister.judge(KnownConfiguration(new), in: remembered)
    #expect(judgement.members == members)
  }
}
