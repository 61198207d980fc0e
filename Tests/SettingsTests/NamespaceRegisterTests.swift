import Foundation
import Settings
import TestSupport
import Testing

/// The configurations that may take the place of the one that a namespace remembers.
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

  /// A configuration with one upstream and routes as a file has them.
  private static func configuration(routes: String) throws -> KnownConfiguration {
    KnownConfiguration(try load("upstreams: {app: {url: \"http://10.0.0.1:80\"}}\nroutes: [\(routes)]"))
  }

  /// The judgement after configurations each of which was accepted.
  private static func judge(
    _ own: KnownConfiguration, after before: [KnownConfiguration]
  ) -> NamespaceRegister.Judgement {
    var text: String?
    for known in before { text = NamespaceRegister.judge(known, in: text).text ?? text }
    return NamespaceRegister.judge(own, in: text)
  }

  @Test func `a configuration that is known changes nothing`() throws {
    let first = try Self.configuration("/a")
    #expect(Self.judge(first, after: []).text != nil)
    #expect(Self.judge(first, after: []).change == nil)
    #expect(Self.judge(first, after: [first]).changesNothing)
  }

  private static let orders = "{name: orders, match: {path: /orders}, caller: {parts: [address]}}"
  private static let hooks = "{name: hooks, match: {path: /hooks}, caller: {parts: [\"header:x\"]}}"

  private static let off = "{name: off, match: {methods: [PUT], path: /orders}, idempotency: \"off\"}"

  @Test(arguments: [
    // Routes behind, in front with the same identity, and for what was unprotected.
    (orders, "\(orders), \(hooks)"), (orders, "\(hooks), \(orders)"), ("\(off), \(orders)", orders),
    (orders, "\(orders.replacing("orders", with: "v2")), \(orders)"),
    (orders.replacing("}}", with: "}, shadow: true}"), orders), (hooks, "\(hooks), \(off)"),
    // Names, times, and the order of what a route lists.
    (orders, orders.replacing("name: orders", with: "name: bought, retention: 1h")),
    (
      orders.replacing("{path", with: "{methods: [PUT, POST], headers: {a: b, c: d}, path"),
      orders.replacing("{path", with: "{headers: {c: d, a: b}, methods: [POST, PUT], path")
    ),
  ]) func `a configuration by which each request finds its record takes the old one's place`(
    old: String, new: String
  ) throws {
    let own = try Self.configuration(routes: new)
    let judgement = Self.judge(own, after: [try Self.configuration(routes: old)])
    #expect(judgement.change == nil)
    let after = Self.judge(own, after: [try Self.configuration(routes: old), own])
    #expect(after.changesNothing)
  }

  @Test(arguments: [
    (orders.replacing("/orders", with: "/bought"), "routes[0].match"), (hooks, "routes"), ("", "routes"),
    (orders.replacing("[address]", with: "[\"header:x\"]"), "routes[0].caller"),
    (orders.replacing("}}", with: "}, idempotency: \"off\"}"), "routes[0].idempotency"),
    (orders.replacing("}}", with: "}, shadow: true}"), "routes[0].shadow"),
    (orders.replacing("}}", with: "}, endpoint: route}"), "routes[0].endpoint"),
    (orders.replacing("}}", with: "}, key: {from: [\"query:k\"]}}"), "routes[0].key"),
    (
      "\(hooks.replacing("path: /hooks", with: "methods: [POST], path: \"/{x}\"")), \(orders)",
      "routes[0].caller"
    ),
    ("\(off), \(orders)", "routes[0].match"),
  ]) func `a configuration by which a request may find another record is refused`(
    routes: String, member: String
  ) throws {
    let judgement = Self.judge(
      try Self.configuration(routes: routes), after: [try Self.configuration(routes: Self.orders)])
    #expect(judgement.members == [member])
    let remedies = judgement.change?.refusal.suffix(2).map(\.member)
    #expect(remedies == ["store.namespace", "allow_identity_change"])
  }

  /// The file that `init` writes, and a newcomer's second one.
  @Test(arguments: ["127.0.0.1:9000", "10.0.0.1:80"], ["127.0.0.1:9000", "10.0.0.2:80"])
  func `an upstream that is renamed while its routes are narrowed is refused at any address`(
    before: String, after: String
  ) throws {
    let first = try Self.configuration("/**", upstream: "backend", at: before)
    let second = try Self.configuration("/v1/orders", name: "orders", upstream: "shop", at: after)
    #expect(Self.judge(second, after: [first]).members == ["routes"])
    let renamed = try Self.configuration("/**", upstream: "shop", at: after)
    #expect(Self.judge(renamed, after: [first]).members == ["routes[0].upstream"])
  }

  @Test func `a digest accepts one change, wherever its backends are, and no later one`() throws {
    func change(_ old: KnownConfiguration, _ new: KnownConfiguration) throws -> ConfigurationChange.Digest {
      try #require(Self.judge(new, after: [old]).change).digest
    }
    let (first, second) = (try Self.configuration("/a"), try Self.configuration("/a", caller: "header:x"))
    let third = try Self.configuration("/a", caller: "header:y")
    let digest = try change(first, second)
    #expect(ConfigurationChange.Digest(digest.text) == digest)
    #expect(try change(try Self.configuration("/a", at: "10.0.0.2:80"), second) == digest)
    let others = [try change(second, third), try change(first, third), try change(second, first)]
    #expect(Set(others + [digest]).count == 4)
    // The old configuration is forgotten with it.
    #expect(Self.judge(first, after: [first, second]).members == ["routes[0].caller"])
  }

  @Test func `a digest accepts its change once, also after the way back`() throws {
    let (first, second) = (try Self.configuration("/a"), try Self.configuration("/a", caller: "header:x"))
    var text = NamespaceRegister.judge(first, in: nil).text
    var digests: Set<ConfigurationChange.Digest> = []
    for own in [second, first, second, first] {
      let judgement = NamespaceRegister.judge(own, in: text)
      digests.insert(try #require(judgement.change).digest)
      text = judgement.text
      // Another node of the same rollout needs no digest.
      #expect(NamespaceRegister.judge(own, in: text).changesNothing)
    }
    #expect(digests.count == 4)
  }

  @Test func `routes that are appended leave a digest used`() throws {
    let (first, second) = (Self.orders, Self.orders.replacing("address", with: "\"header:x\""))
    var text = NamespaceRegister.judge(try Self.configuration(routes: first), in: nil).text
    let accepted = NamespaceRegister.judge(try Self.configuration(routes: second), in: text)
    text = accepted.text
    for routes in ["\(second), \(Self.hooks)", "\(first), \(Self.hooks)", first] {
      text = NamespaceRegister.judge(try Self.configuration(routes: routes), in: text).text
    }
    let again = NamespaceRegister.judge(try Self.configuration(routes: second), in: text)
    #expect(try #require(again.change).digest != accepted.change?.digest)
  }

  @Test func `of the reasons of large configurations the first ones are listed`() throws {
    func configuration(_ count: Int) throws -> KnownConfiguration {
      try Self.configuration(
        routes: (0..<count).map { "{name: r\($0), match: {path: /r\($0)}, caller: {parts: [address]}}" }
          .joined(separator: ", "))
    }
    let change = try #require(Self.judge(try configuration(1), after: [try configuration(50)]).change)
    #expect(change.refusal.count { $0.member.hasPrefix("routes") } == 21)
    #expect(change.refusal.contains { $0.description == "routes: … and 29 more such reasons" })
  }

  @Test(arguments: [
    ("[payload]", "{body: auto}", true), ("[payload]", "{ignore: [/a]}", false),
    ("[[\"query:a\", \"json:/b,c\"]]", "{body: auto}", true),
    ("[[\"query:a\", \"json:/b\"]]", "{body: auto}", false),
  ]) func `keys of several parts and of payloads are remembered`(
    key: String, fingerprint: String, isSame: Bool
  ) throws {
    func configuration(_ key: String, _ fingerprint: String) throws -> KnownConfiguration {
      try Self.configuration(
        routes: "{name: r, caller: {parts: [address]}, key: {from: \(key)}, fingerprint: \(fingerprint)}")
    }
    let known = key.contains("payload") ? "[payload]" : "[[\"query:a\", \"json:/b,c\"]]"
    let judgement = Self.judge(
      try configuration(key, fingerprint), after: [try configuration(known, "{body: auto}")])
    #expect(judgement.members.isEmpty == isSame)
  }

  @Test func `the same routes with another address are reported, and follow`() throws {
    let first = try Self.configuration("/a")
    let judgement = Self.judge(try Self.configuration("/a", at: "10.0.0.2:80"), after: [first])
    #expect(judgement.change == nil)
    #expect(judgement.movedUpstreams == ["upstream app is at 10.0.0.1:80 there and at 10.0.0.2:80 here"])
  }

  @Test(arguments: [
    "trusted_proxies: [10.1.0.0/16]", "listen: [{address: \"127.0.0.1:8080\", proxy_protocol: true}]",
  ]) func `settings that determine a client's address count if a route uses it`(trusted: String) throws {
    for (caller, members) in [("address", ["trusted_proxies"]), ("header:x", [])] {
      let first = try Self.configuration("/a", caller: caller)
      let second = try Self.configuration("/a", caller: caller, trusted)
      #expect(Self.judge(second, after: [first]).members == members)
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
      let judgement = Self.judge(try configuration(after), after: [try configuration(before)])
      #expect(judgement.members == Array(repeating: "listen", count: count))
    }
    // A listener that has moved may have got another name.
    let known = try configuration("a")
    #expect(Self.judge(try configuration("b", port: 9443), after: [known]).members == ["listen"])
    #expect(Self.judge(try configuration("a", port: 9443), after: [known]).change == nil)
    // Certificates that no route looks at make no callers.
    let unlooked = Self.judge(
      try configuration("b", caller: "header:x"), after: [try configuration("a", caller: "header:x")])
    #expect(unlooked.change == nil)
  }

  @Test(arguments: ["", "{}", #"{"version":2,"configurations":[]}"#, "nonsense"])
  func `a text in an unknown format is refused, or given up by its digest`(text: String) throws {
    let own = try Self.configuration("/a")
    let judgement = NamespaceRegister.judge(own, in: text)
    let change = try #require(judgement.change)
    #expect(change.refusal.map(\.member) == ["store.namespace", "allow_identity_change"])
    #expect(change.refusal[0].message.contains("start that version"))
    #expect(NamespaceRegister.judge(own, in: judgement.text).changesNothing)
    #expect(NamespaceRegister.judge(own, in: text + " ").change?.digest != change.digest)
  }
}

/// The namespaces that stores had before a namespace had one configuration, with records that the last such version
/// wrote.
struct EarlierNamespaceTests {
  /// A text as earlier versions wrote it.
  private static func text(_ configurations: String..., accepted: ConfigurationChange.Digest? = nil) -> String
  {
    let head = accepted.map { "\"accepted\":\"\($0)\"," } ?? ""
    return #"{\#(head)"configurations":[\#(configurations.joined(separator: ","))],"version":1}"#
  }

  private static let proxies = "e3b0c44298fc1c14"

  /// The record of a configuration with one route.
  private static func record(
    path: String, at place: String, name: String = "r", upstream: String = "app", caller: String = "address"
  ) -> String {
    #"{"proxies":"\#(proxies)","routes":[{"anonymous":"refuse","caller":["\#(caller)"],"endpoint":"path","#
      + #""headers":[],"keys":["header:idempotency-key"],"methods":[],"name":"\#(name)","path":"\#(path)","#
      + #""spelling":"lenient","upstream":"\#(upstream)"}],"upstreams":{"\#(upstream)":"\#(place)"}}"#
  }

  private static func configuration(
    _ path: String, at place: String, name: String = "r", upstream: String = "app", caller: String = "address"
  ) throws -> KnownConfiguration {
    KnownConfiguration(
      try load(
        """
        upstreams: {\(upstream): {url: "http://\(place)"}}
        routes: [{name: \(name), match: {path: "\(path)"}, caller: {parts: ["\(caller)"]}}]
        """))
  }

  @Test func `a record of an earlier version is that of the same configuration`() throws {
    let record = Self.record(path: "/a/{id}", at: "10.0.0.1:80")
    let own = try Self.configuration("/a/{id}", at: "10.0.0.1:80")
    #expect(NamespaceRegister.judge(own, in: nil).text == Self.text(record))
    #expect(NamespaceRegister.judge(own, in: Self.text(record)).changesNothing)
    let other = try Self.configuration("/a/{id}", at: "10.0.0.1:80", caller: "header:x")
    #expect(NamespaceRegister.judge(other, in: Self.text(record)).members == ["routes[0].caller"])
  }

  /// All members that earlier versions wrote of a route.
  @Test func `each member of an earlier record is compared`() throws {
    let routes = #"""
      routes:
        - {name: off, match: {path: /off}, idempotency: "off"}
        - {name: seen, match: {path: /seen}, shadow: true, caller: {parts: [address]}}
        - name: all
          match: {methods: [POST, PUT], path: "/a/{id}", host: "[::1]", headers: {X-Kind: secret}}
          caller: {parts: ["jwt:sub | cookie:sid", "header?:X-Org"], anonymous: allow}
          key: {from: ["header:Idempotency-Key", ["query:a", "json:/b"], payload]}
          fingerprint: {body: raw}
          endpoint: {scope: route, host: any}
        - {name: shared, match: {path: /g, graphql: mutation}, caller: {shared: true}}

      """#
    let old =
      #"{"routes":[{"headers":[],"methods":[],"name":"off","path":"/off","spelling":"lenient"},"#
      + #"{"headers":[],"methods":[],"name":"seen","path":"/seen","shadow":true,"spelling":"lenient"},"#
      + #"{"anonymous":"allow","caller":["jwt:sub | cookie:sid","header?:x-org"],"endpoint":"route","#
      + #""endpointHost":"any","fingerprint":"1;raw","headers":["x-kind:2bb80d537b1da3e3"],"#
      + #""host":"[0:0:0:0:0:0:0:1]","keys":["header:idempotency-key","[\"query:a\",\"json:/b\"]","payload"],"#
      + #""methods":["POST","PUT"],"name":"all","path":"/a/{id}","spelling":"lenient","upstream":"app"},"#
      + #"{"caller":[],"endpoint":"path","graphql":"mutation","headers":[],"keys":["header:idempotency-key"],"#
      + #""methods":[],"name":"shared","path":"/g","spelling":"lenient","upstream":"app"}],"#
      + #""upstreams":{"app":"10.0.0.1:80"}}"#
    let own = KnownConfiguration(
      try load(
        "upstreams: {app: {url: \"http://10.0.0.1:80\"}}\n"
          + "jwt: {jwks_url: \"https://id/\", audience: a, issuer: i}\n" + routes))
    let now = try #require(NamespaceRegister.judge(own, in: nil).text)
    let remembered = Self.text(old)
    // An IPv6 address was kept as it was written.
    #expect(now == remembered.replacing("0:0:0:0:0:0:0:1", with: "::1"))
    #expect(NamespaceRegister.judge(own, in: remembered).change == nil)
    for (member, before, after) in [
      ("caller", "jwt:sub | cookie", "jwt:act | cookie"), ("key", "json:/b", "json:/c"),
      ("fingerprint", "1;raw", "2;raw"), ("endpoint", "\"any\"", "\"own\""),
      ("name", "\"all\"", "\"most\""), ("upstream", "\"upstream\":\"app\"", "\"upstream\":\"api\""),
    ] {
      let other = remembered.replacing(before, with: after, maxReplacements: 1)
      #expect(NamespaceRegister.judge(own, in: other).members == ["routes[2].\(member)"], "\(after)")
    }
    for (before, after) in [("2bb80d", "2bb80e"), ("::", ":1:"), ("\"PUT\"", "\"PATCH\""), ("/a/", "/b/")] {
      let other = remembered.replacing("0:0:0:0:0:0:0:1", with: "::1").replacing(before, with: after)
      #expect(NamespaceRegister.judge(own, in: other).members == ["routes[2].match"], "\(after)")
    }
    let others = remembered.replacing("\"mutation\"", with: "\"query\"")
    #expect(NamespaceRegister.judge(own, in: others).members == ["routes[3].match"])
    // Routes without records under another literal take none of their requests.
    let passed = remembered.replacing("/off", with: "/of").replacing("/seen", with: "/see")
    #expect(NamespaceRegister.judge(own, in: passed).change == nil)
  }

  @Test func `services that shared a namespace go on, and no third one joins them`() throws {
    let (app, pay) = (
      Self.record(path: "/a", at: "10.0.0.1:80"),
      Self.record(path: "/b", at: "10.0.0.2:80", name: "q", upstream: "pay")
    )
    let text = Self.text(app, pay)
    for own in [
      try Self.configuration("/a", at: "10.0.0.1:80"),
      try Self.configuration("/b", at: "10.0.0.2:80", name: "q", upstream: "pay"),
    ] {
      #expect(NamespaceRegister.judge(own, in: text).changesNothing)
    }
    // One that follows takes the place of the one that it follows.
    let later = try Self.configuration("/a", at: "10.0.0.1:80", name: "later")
    #expect(
      NamespaceRegister.judge(later, in: text).text
        == Self.text(pay, app.replacing("\"r\"", with: "\"later\"")))
    let third = try Self.configuration("/c", at: "10.0.0.3:80", upstream: "third")
    let judgement = NamespaceRegister.judge(third, in: text)
    #expect(judgement.members == ["routes[0].match", "routes"])
    // Once it is accepted, it is alone.
    let record = Self.record(path: "/c", at: "10.0.0.3:80", upstream: "third")
    #expect(judgement.text == Self.text(record, accepted: judgement.change?.digest))
  }
}
