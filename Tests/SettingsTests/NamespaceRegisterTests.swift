import Foundation
import Settings
import TestSupport
import Testing

/// The configurations that a namespace takes for one service's.
struct NamespaceRegisterTests {
  /// A configuration with an upstream of a name, at a place, and a route by a path and a caller.
  private static func configuration(
    _ path: String, name: String = "r", caller: String = "address", upstream: String = "app",
    at place: String = "10.0.0.1:80", _ more: String = ""
  ) throws -> KnownConfiguration {
    KnownConfiguration(
      try load(
        """
        upstreams: {\(upstream): {url: "http://\(place)"}}
        \(more)
        routes: [{name: \(name), match: {path: "\(path)"}, caller: {parts: ["\(caller)"]}}]
        """))
  }

  private static func judge(
    _ own: KnownConfiguration, after before: [KnownConfiguration], isShared: Bool = true
  ) throws -> NamespaceRegister.Judgement {
    var text: String?
    for known in before { text = NamespaceRegister.judge(known, in: text, isShared: isShared).text ?? text }
    return NamespaceRegister.judge(own, in: text, isShared: isShared)
  }

  @Test func `a configuration that is known changes nothing, however many others there are`() throws {
    let first = try Self.configuration("/a")
    #expect(try Self.judge(first, after: []).text != nil)
    #expect(try Self.judge(first, after: [first]).text == nil)
    let other = try Self.configuration("/b", at: "10.0.0.2:80")
    #expect(try Self.judge(first, after: [first, other]).text == nil)
    #expect(try Self.judge(other, after: [first, other]).text == nil)
  }

  @Test func `a changed configuration of the same service replaces the old one`() throws {
    let first = try Self.configuration("/a")
    let renamed = try Self.judge(try Self.configuration("/a/**"), after: [first])
    #expect(renamed.changes.isEmpty && renamed.foreign.isEmpty)
    #expect(renamed.text?.contains(#""/a/**""#) == true && renamed.text?.contains(#""/a""#) == false)
    let changed = try Self.judge(try Self.configuration("/a", caller: "header:x"), after: [first])
    #expect(changed.changes.map(\.member) == ["routes[0].caller"])
  }

  @Test func `of the reasons and the routes of large configurations the first ones are listed`() throws {
    func configuration(
      _ count: Int, upstream: String = "app", at place: String = "10.0.0.1:80"
    ) throws -> KnownConfiguration {
      let routes = (0..<count).map { "  - {name: r\($0), match: {path: /r\($0)}}\n" }.joined()
      return KnownConfiguration(
        try load(
          "upstreams: {\(upstream): {url: \"http://\(place)\"}}\ndefaults: {caller: {parts: [address]}}\nroutes:\n"
            + routes))
    }
    let changes = try Self.judge(try configuration(1), after: [try configuration(50)]).changes
    #expect(changes.count == 21)
    #expect(changes.last?.description == "routes: … and 29 more such reasons")
    let other = try Self.judge(
      try configuration(50, upstream: "other", at: "10.0.0.2:80"), after: [try configuration(50)])
    #expect(other.renamed.count == 21)
    #expect(other.renamed.last == "… and 30 more")
    let foreign = try Self.judge(
      try Self.configuration("/z", at: "10.0.0.2:80"), after: [try configuration(50)])
    #expect(foreign.foreign.map { $0.hasSuffix(", r19, … and 30 more") } == [true])
  }

  @Test func `a route that is narrowed to mutations leaves its other requests unprotected`() throws {
    func configuration(_ match: String) throws -> KnownConfiguration {
      KnownConfiguration(
        try load(
          "upstreams: {app: {url: \"http://10.0.0.1:80\"}}\n"
            + "routes: [{name: r, match: {\(match)}, caller: {parts: [address]}}]"))
    }
    let all = try configuration("path: /g")
    let mutations = try configuration("path: /g, graphql: mutation")
    #expect(try Self.judge(mutations, after: [mutations]).text == nil)
    #expect(try Self.judge(mutations, after: [all]).changes.map(\.member) == ["routes[0].match"])
    #expect(try Self.judge(all, after: [mutations]).changes.isEmpty)
  }

  @Test func `a shared caller and those in query and body are remembered`() throws {
    func configuration(_ caller: String) throws -> KnownConfiguration {
      KnownConfiguration(
        try load(
          "upstreams: {app: {url: \"http://10.0.0.1:80\"}}\nroutes: [{name: r, caller: {\(caller)}}]"))
    }
    let callers = ["shared: true", "parts: [\"query:a\"]", "parts: [\"json:/a\"]"]
    for own in callers {
      for known in callers {
        let judgement = try Self.judge(try configuration(own), after: [try configuration(known)])
        #expect(!judgement.isUnreadable)
        #expect(judgement.changes.map(\.member) == (own == known ? [] : ["routes[0].caller"]))
      }
    }
  }

  @Test(arguments: [
    ("[payload]", "{body: auto}", true), ("[payload]", "{ignore: [/a]}", false),
    ("[[\"query:a\", \"json:/b,c\"]]", "{body: auto}", true),
    ("[[\"query:a\", \"json:/b\"]]", "{body: auto}", false),
  ]) func `keys of several parts and of payloads are remembered`(
    key: String, fingerprint: String, isSame: Bool
  ) throws {
    func configuration(_ key: String, _ fingerprint: String) throws -> KnownConfiguration {
      let text = "name: r, caller: {parts: [address]}, key: {from: \(key)}, fingerprint: \(fingerprint)"
      return KnownConfiguration(
        try load("upstreams: {app: {url: \"http://10.0.0.1:80\"}}\nroutes: [{\(text)}]"))
    }
    let known = key.contains("payload") ? "[payload]" : "[[\"query:a\", \"json:/b,c\"]]"
    let judgement = try Self.judge(
      try configuration(key, fingerprint), after: [try configuration(known, "{body: auto}")])
    #expect(!judgement.isUnreadable)
    #expect(judgement.changes.isEmpty == isSame)
  }

  @Test(arguments: [
    // Moved away, at an address that names one service; at a loopback address the route's name counts, too.
    ("10.0.0.1:80", "app", "10.0.0.1:80", true, ["routes[0].match"], 0),
    ("127.0.0.1:80", "app", "127.0.0.1:80", true, ["routes[0].match", "store.namespace"], 0),
    ("127.0.0.1:80", "app", "127.0.0.1:81", true, [], 1), ("10.0.0.1:80", "app", "10.0.0.2:80", true, [], 1),
    // A store of one process has one service.
    ("127.0.0.1:80", "app", "127.0.0.1:80", false, ["routes[0].match"], 0),
    ("10.0.0.1:80", "other", "10.0.0.2:80", false, ["routes[0].match"], 0),
    // No record of another upstream's name is ever found.
    ("10.0.0.1:80", "other", "10.0.0.2:80", true, [], 0),
  ]) func `routes without anything in common may belong to another service`(
    place: String, upstream: String, other: String, isShared: Bool, changes: [String], foreign: Int
  ) throws {
    let first = try Self.configuration("/a", at: place)
    let second = try Self.configuration("/b", upstream: upstream, at: other)
    let judgement = try Self.judge(second, after: [first], isShared: isShared)
    #expect(judgement.changes.map(\.member) == changes)
    #expect(judgement.foreign.count == foreign)
  }

  private static let moved = "{name: r, match: {path: /b}, caller: {parts: [address]}}"
  private static let other = "{name: other, match: {path: /b}, caller: {parts: [address]}"

  @Test(
    arguments: ["http://127.0.0.1:80", "unix:/run/app.sock", "http://10.0.0.1:80"],
    [
      (moved, ["routes[0].match"]), ("{name: rest, match: {path: /b}, idempotency: \"off\"}", ["routes"]),
      ("\(other), shadow: true}", ["routes"]), ("", ["routes"]), ("\(other)}", nil),
    ]) func `protection that an upstream of one name and address loses is noticed`(
      place: String, change: (routes: String, members: [String]?)
    ) throws
  {
    let members = change.members
    func configuration(_ routes: String) throws -> KnownConfiguration {
      KnownConfiguration(try load("upstreams: {app: {url: \"\(place)\"}}\nroutes: [\(routes)]"))
    }
    let known = try configuration("{name: r, match: {path: /a}, caller: {parts: [address]}}")
    let judgement = try Self.judge(try configuration(change.routes), after: [known])
    if place.contains("10.") {
      #expect(judgement.changes.map(\.member) == members ?? ["routes"] && judgement.foreign.isEmpty)
    } else {
      // Routes of other names may be another sidecar's.
      #expect(judgement.changes.map(\.member) == members.map { $0 + ["store.namespace"] } ?? [])
      #expect(
        judgement.foreign.count == (members == nil ? 1 : 0) && judgement.followsNone == (members == nil))
    }
  }

  /// A shadowed route takes no safe methods, of which another one may protect some.
  @Test func `what a shadowed route leaves to others is compared`() throws {
    func configuration(_ routes: String) throws -> KnownConfiguration {
      KnownConfiguration(try load("upstreams: {app: {url: \"http://10.0.0.1:80\"}}\nroutes: [\(routes)]"))
    }
    func reports(_ caller: String) -> String {
      "{name: p, match: {methods: [GET], path: /r/**}, caller: {parts: [\"header:\(caller)\"]}}"
    }
    let shadowed = "{name: s, match: {path: /r/**}, caller: {parts: [address]}, shadow: true}"
    let known = try configuration("\(shadowed), \(reports("X-A"))")
    let changed = try Self.judge(try configuration("\(shadowed), \(reports("X-B"))"), after: [known])
    #expect(changed.changes.map(\.member) == ["routes[1].caller"])
    let alone = try configuration(reports("X-A"))
    let added = try Self.judge(try configuration("\(shadowed), \(reports("X-A"))"), after: [alone])
    #expect(added.changes.isEmpty)
  }

  @Test func `services whose routes have one name stay in the namespace that knows them`() throws {
    let first = try Self.configuration("/a", at: "127.0.0.1:80")
    var text = NamespaceRegister.judge(first, in: nil, isShared: true).text
    let other = try Self.configuration("/b", name: "q", at: "127.0.0.1:80")
    text = NamespaceRegister.judge(other, in: text, isShared: true).text
    // As earlier versions entered them.
    text = text?.replacing(#""name":"q""#, with: #""name":"r""#)
    for (path, isNew) in [("/a", false), ("/b", false), ("/a/**", true), ("/b/**", true)] {
      let own = try Self.configuration(path, at: "127.0.0.1:80")
      let judgement = NamespaceRegister.judge(own, in: text, isShared: true)
      #expect(judgement.changes.isEmpty && judgement.foreign.count == 1, "\(path)")
      #expect((judgement.text != nil) == isNew && judgement.followsNone != isNew, "\(path)")
    }
  }

  @Test func `renaming an upstream changes the records' identity`() throws {
    let first = try Self.configuration("/a")
    let renamed = try Self.judge(try Self.configuration("/a", upstream: "api"), after: [first])
    #expect(renamed.changes.map(\.member) == ["routes[0].upstream"])
  }

  /// A configuration with two upstreams, each of which has a route of its own.
  private static func pair(
    _ first: String = "app", at place: String = "10.0.0.1:80", _ more: String = "", path: String = "/a",
    isWhole: Bool = true
  ) throws -> KnownConfiguration {
    let caller = "caller: {parts: [address]}"
    let second = isWhole ? "  - {name: pay, match: {path: /b}, upstream: pay, \(caller)}" : ""
    return KnownConfiguration(
      try load(
        """
        upstreams: {\(first): {url: "http://\(place)"}, pay: {url: "http://10.0.0.9:80"}}
        routes:
          - {name: r, match: {path: "\(path)"}, upstream: \(first), \(caller)\(more)}
        \(second)
        """))
  }

  @Test func `a route that is switched off, or whose upstream has another name and place, is noticed`() throws
  {
    let known = try Self.pair()
    for (own, end) in [
      (try Self.pair("app", ", idempotency: \"off\""), "routes[0].idempotency"),
      (try Self.pair("app", ", shadow: true"), "routes[0].shadow"),
      (try Self.pair("api", at: "10.0.0.2:80"), "routes[0].upstream"),
    ] {
      #expect(try Self.judge(own, after: [known]).changes.map(\.member) == [end])
    }
    // An upstream that was given up has no more requests.
    #expect(
      try Self.judge(try Self.pair("api", at: "10.0.0.2:80", path: "/c"), after: [known]).changes.isEmpty)
  }

  @Test(arguments: ["10.0.0.1:80", "127.0.0.1:80"])
  func `a configuration that protects nothing any more succeeds the one that did`(place: String) throws {
    let known = try Self.configuration("/a", at: place)
    for (member, change) in [("idempotency", "idempotency: \"off\""), ("shadow", "shadow: true")] {
      let own = KnownConfiguration(
        try load(
          "upstreams: {app: {url: \"http://\(place)\"}}\n"
            + "routes: [{name: r, match: {path: /a}, caller: {parts: [address]}, \(change)}]"))
      #expect(try Self.judge(own, after: [known]).changes.map(\.member) == ["routes[0].\(member)"])
    }
  }

  @Test func `the same requests for an upstream of another name are reported`() throws {
    let known = try Self.configuration("/a", at: "127.0.0.1:80")
    let judgement = try Self.judge(
      try Self.configuration("/{x}", upstream: "api", at: "10.0.0.2:80"), after: [known])
    #expect(judgement.changes.isEmpty && judgement.foreign.isEmpty)
    #expect(judgement.renamed == ["route r for upstream api here, and route r for upstream app there"])
    let other = try Self.configuration("/b", upstream: "api", at: "127.0.0.1:80")
    #expect(try Self.judge(other, after: [known]).renamed.isEmpty)
  }

  @Test func `a route that begins to take batches identifies other records`() throws {
    func configuration(_ more: String) throws -> KnownConfiguration {
      KnownConfiguration(
        try load(
          "upstreams: {app: {url: \"http://10.0.0.1:80\"}}\n"
            + "routes: [{name: r, match: {path: /a, methods: [POST]}, caller: {parts: [address]}, \(more)}]"))
    }
    let single = try configuration("key: {from: [\"json:/orders/0/id\"]}")
    let batch = try configuration("batch: {items: /orders, key: /id, results: /results}")
    for (own, known) in [(batch, single), (single, batch)] {
      let judgement = try Self.judge(own, after: [known])
      #expect(!judgement.isUnreadable && judgement.changes.map(\.member) == ["routes[0].batch"])
    }
    #expect(try Self.judge(batch, after: [batch]).text == nil)
    let others = try configuration("batch: {items: /orders, key: /id, results: /made}")
    #expect(try Self.judge(others, after: [batch]).changes.isEmpty)
  }

  @Test func `an upstream of the machine itself was renamed if its requests are recorded for another name`()
    throws
  {
    let known = try Self.configuration("/a", at: "127.0.0.1:80")
    let renamed = try Self.configuration("/a", upstream: "api", at: "127.0.0.1:80")
    let members = ["routes[0].upstream", "store.namespace"]
    #expect(try Self.judge(renamed, after: [known]).changes.map(\.member) == members)
    // The first configuration of a newcomer takes everything, and the second one narrows it.
    let narrowed = try Self.judge(renamed, after: [try Self.configuration("/**", at: "127.0.0.1:80")])
    #expect(narrowed.changes.map(\.member) == ["routes[0].match", "store.namespace"])
    let wider = try Self.configuration("/{x}", upstream: "api", at: "127.0.0.1:80")
    #expect(try Self.judge(wider, after: [known]).changes.map(\.member) == members)
    // A reload has no other service.
    #expect(
      try Self.judge(renamed, after: [known], isShared: false).changes.map(\.member) == ["routes[0].upstream"]
    )
    for other in [
      try Self.configuration("/b", upstream: "api", at: "127.0.0.1:80"),
      try Self.configuration("/a", upstream: "api", at: "127.0.0.1:81"),
    ] {
      #expect(try Self.judge(other, after: [known]).changes.isEmpty)
    }
  }

  @Test func `the same routes with another address belong to one service, and are reported`() throws {
    let first = try Self.configuration("/a")
    let second = try Self.configuration("/a", at: "10.0.0.2:80")
    let judgement = try Self.judge(second, after: [first])
    #expect(judgement.changes.isEmpty && !judgement.followsNone)
    #expect(
      judgement.foreign == [
        "upstream app is at 10.0.0.1:80 there and at 10.0.0.2:80 here, and its routes there are r"
      ])
    #expect(try Self.judge(second, after: [first], isShared: false).foreign.isEmpty)
  }

  @Test(arguments: [
    "trusted_proxies: [10.1.0.0/16]", "listen: [{address: \"127.0.0.1:8080\", proxy_protocol: true}]",
  ]) func `settings that determine a client's address count if a route uses it`(trusted: String) throws {
    for (caller, count) in [("address", 1), ("header:x", 0)] {
      let first = try Self.configuration("/a", caller: caller)
      let second = try Self.configuration("/a", caller: caller, trusted)
      let judgement = try Self.judge(second, after: [first])
      #expect(judgement.changes.count { $0.member == "trusted_proxies" } == count)
    }
  }

  @Test func `another name of an authority makes other callers`() async throws {
    let certificates = try await Certificates()
    let server = try await certificates.server()
    func configuration(_ name: String?, port: Int = 8443, caller: String = "client_certificate") throws
      -> KnownConfiguration
    {
      let tls =
        "certificate: \"\(server.certificate)\", key: \"\(server.key)\", client_ca: \"\(certificates.authority)\""
      let named = name.map { ", client_ca_name: \($0)" } ?? ""
      return try Self.configuration(
        "/a", caller: caller, "listen: [{address: \"127.0.0.1:\(port)\", tls: {\(tls)\(named)}}]")
    }
    let steps: [(String?, String?, Int)] = [
      (nil, nil, 0), ("a", "a", 0), (nil, "a", 1), ("a", nil, 1), ("a", "b", 1),
    ]
    for (before, after, count) in steps {
      let judgement = try Self.judge(try configuration(after), after: [try configuration(before)])
      #expect(judgement.changes.map(\.member) == Array(repeating: "listen", count: count))
    }
    // A listener that has moved may have got another name.
    #expect(
      try Self.judge(try configuration("b", port: 9443), after: [try configuration("a")]).changes.map(
        \.member)
        == ["listen"])
    #expect(
      try Self.judge(try configuration("a", port: 9443), after: [try configuration("a")]).changes.isEmpty)
    // Certificates that no route looks at make no callers.
    let unlooked = try Self.judge(
      try configuration("b", caller: "header:x"), after: [try configuration("a", caller: "header:x")])
    #expect(unlooked.changes.isEmpty)
  }

  @Test func `a configuration that this version cannot read is reported, and stays`() throws {
    let first = try Self.configuration("/a")
    let text = NamespaceRegister.judge(first, in: nil, isShared: true).text
    let newer = text?.replacingOccurrences(of: "lenient", with: "newer")
    let judgement = NamespaceRegister.judge(try Self.configuration("/b"), in: newer, isShared: true)
    #expect(judgement.isUnreadable)
    #expect(judgement.text?.contains("newer") == true)
  }

  @Test func `a part that a file may no longer have is remembered`() throws {
    let own = try Self.configuration("/a", caller: "query:a")
    let text = NamespaceRegister.judge(own, in: nil, isShared: true).text
    let older = text?.replacingOccurrences(of: "query:a", with: "query: a")
    let judgement = NamespaceRegister.judge(own, in: older, isShared: true)
    #expect(!judgement.isUnreadable && judgement.changes.map(\.member) == ["routes[0].caller"])
  }

  @Test(arguments: ["", "{}", #"{"version":2,"configurations":[]}"#, "nonsense"])
  func `a text in an unknown format is left unchanged`(text: String) throws {
    let judgement = NamespaceRegister.judge(try Self.configuration("/a"), in: text, isShared: true)
    #expect(judgement.isUnreadable && judgement.text == nil)
  }

  @Test func `the latest sixteen configurations are kept`() throws {
    struct Register: Decodable { let configurations: [KnownConfiguration] }
    let many = try (0..<40).map { number in
      try Self.configuration("/a", upstream: "u\(number)", at: "10.0.1.\(number):80")
    }
    let own = try Self.configuration("/a")
    let text = try #require(try Self.judge(own, after: many).text)
    let register = try JSONDecoder().decode(Register.self, from: Data(text.utf8))
    #expect(register.configurations == many.suffix(15) + [own])
  }
}
