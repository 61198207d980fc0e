import Idempotency
import TLS
import Wire

extension Settings {
  static let schema = Schema(Settings(), check: { $0.check($1) }) {
    Member.sections("listen", \.listen, ListenSettings.schema, such: "[{address: \"127.0.0.1:8080\"}]")
      .restart
    Member.optional(
      "admin", \.admin, AdminSettings.schema, "Without this section there is no listener for operators."
    )
    .restart
    // The limit is higher than the number of any machine's cores, and each loop costs descriptors and memory.
    Member("workers", \.workers, .integer(0...1024), "event loops; 0 for one per core").restart
    Member(
      "drain_delay", \.drainDelay, .duration(),
      "the time between *not ready* and accepting no more connections")
    Member("shutdown_grace", \.shutdownGrace, .duration(), "the time for what is in flight at a stop")
    Member("trusted_proxies", \.trustedProxies, .proxies, "the proxies whose `X-Forwarded-*` are believed")
      .identity("where `address` is a caller's part")
    Member("unmatched_keys", \.unmatchedKeys, .word, "`refuse` refuses keys that no protected route takes")
    Member("underscores", \.underscores, .word, "`pass` keeps request fields with an underscore in the name")
    Member(
      "upstreams", \.upstreams, values: "a section for each upstream",
      "The name is part of what identifies a request; the address is not.",
      show: { upstreams in
        .members(
          upstreams.sorted { $0.key < $1.key }.map {
            Shown.Member($0.key, UpstreamSettings.schema.shown($0.value))
          })
      }, read: { $0.readUpstreams($1) }
    ).required("is missing: name a backend, such as \(backend)").parts(
      UpstreamSettings.schema.rows, within: "upstreams.NAME")
    Member.section("store", \.store, StoreSettings.schema).restart
    Member.section("limits", \.limits, LimitSettings.schema)
    Member.section("log", \.log, LogSettings.schema)
    Member.optional("tracing", \.tracing, TracingSettings.schema, "Without this section there are no spans.")
      .restart
    Member.optional("jwt", \.jwt, JWTSettings.schema, "Without this section no caller is known by a token.")
    Member("policy_document", \.policyDocument, .word, "`off` hides the policy at `/.well-known/idempotency`")
    Member(
      "policy_page", \.policyPage, Notation<String>.page.optional,
      "the page with the problem codes in words, to which browsers are led from there")
    Member("readiness", \.readiness, .word, "`store`: `/readyz` fails while a store that has served fails")
    Member(
      Self.acceptance, \.acceptedChange, .acceptance,
      "accepts the change of how requests find their records that has this digest, and no other one")
    // `check` reads these two once all others are known.
    Member(
      "defaults", \.routes, values: "a section", "the members that routes inherit", show: { _ in nil },
      read: { _, _ in })
    Member(
      "routes", \.routes, values: "a list of sections",
      "`defaults` takes any member but `name` and `match`; a route's own member counts before it. The order of the routes is "
        + "an identity as far as protected requests meet another route.",
      show: { .list($0.map(\.shown)) }, read: { _, _ in }
    ).parts(RouteDraft.ownSchema.rows + RouteDraft.schema.rows, within: "routes[]")
    Member(shown: "warnings") { .texts($0.warnings.map(\.description)) }
  }

  static let acceptance = "allow_identity_change"

  private static let backend = "{backend: {url: \"http://127.0.0.1:9000\"}}"

  private mutating func readUpstreams(_ value: Value) {
    guard let members = value.members("a mapping such as \(Self.backend)") else { return }
    if members.isEmpty { value.refuse("must name a backend, such as \(Self.backend)") }
    for (name, value) in members {
      do throws(Refusal) { _ = try Identifier.parse(name) } catch { value.refuseName(error.message) }
      value.section { section in
        var upstream = UpstreamSettings(name: name, address: .unix(path: ""))
        UpstreamSettings.schema.read(section, into: &upstream)
        upstreams[name] = upstream
      }
    }
  }

  private mutating func check(_ document: Section) {
    refuseTaken(document)
    routes = RouteReader(self, document).read()
    refuseMixedAuthorities(document["listen"]?.elements ?? [])
    warn(document)
  }

  /// Refuses listeners that leave each other no address.
  private func refuseTaken(_ document: Section) {
    var taken: [(address: ServerAddress, place: String)] = []
    func take(_ address: ServerAddress, _ member: Value?) {
      guard let member, !member.hasFault else { return }
      if let other = taken.first(where: { $0.address.excludes(address) }) {
        member.refuse(
          other.address == address
            ? "is taken by \(other.place); write another address"
            : "cannot be beside \(other.place), \(other.address), which has its port and an address in common; write "
              + "another port")
      }
      taken.append((address, member.path))
    }
    if let items = document["listen"]?.elements {
      for (listener, item) in zip(listen, items) { take(listener.address, item["address"]) }
    } else {
      taken = listen.map { ($0.address, "the default of listen") }
    }
    guard let admin else { return }
    take(.tcp(host: admin.host, port: admin.port), document["admin"]?["address"])
  }

  /// Refuses listeners with different authorities that have no name, where callers are known by their certificates: two
  /// clients with the same name, each certified by one of them, would be one caller.
  private func refuseMixedAuthorities(_ items: [Value]) {
    guard routes.contains(where: { $0.idempotency != .off && $0.countsCertificates }) else { return }
    var first: (authority: String, path: String)?
    for (listener, item) in zip(listen, items) {
      guard let files = listener.tls, let authority = files.clientCA, files.clientCAName == nil,
        let section = item["tls"], !section.hasFault
      else { continue }
      if first == nil { first = (authority, section.path) }
      guard let first, first.authority != authority else { continue }
      section.refuse(
        "has another client_ca than \(first.path), and a route knows callers by their certificates: who gets the "
          + "same name from both authorities would be one caller; write a client_ca_name of its own, which makes its "
          + "clients new callers, or the same one in both")
    }
  }

  private func warnOfOwnListeners(_ document: Section) {
    let operators = admin.map { ListenSettings.tcp(host: $0.host, port: $0.port) }
    for (name, upstream) in upstreams.sorted(by: { $0.key < $1.key }) {
      let address = upstream.address
      if listen.contains(where: { $0.takes(address) }) {
        document["upstreams"]?.warn(
          "\(name) is a listener of this Semel, \(address): its requests would come back to it for ever")
      }
      if operators?.takes(address) == true {
        document["upstreams"]?.warn(
          "\(name) is the admin listener of this Semel, \(address): clients would read and change records, as operators "
            + "alone may; write the backend's address")
      }
    }
  }

  private func warn(_ document: Section) {
    let longest = (upstreams.values.map(\.responseTimeout) + routes.map(\.timeToResponse)).max() ?? 0
    if shutdownGrace < longest {
      let place = document["shutdown_grace"] ?? document["upstreams"]
      let (grace, response) = (shutdownGrace.text, longest.text)
      place?.reader.warn(
        "shutdown_grace", at: place?.position ?? .start,
        "\(grace) is shorter than the longest response_timeout, \(response): a stop may leave requests unknown"
      )
    }
    warnOfOwnListeners(document)
    if !routes.contains(where: { $0.isEnforced || $0.shadow }) {
      (document["routes"] ?? document["upstreams"])?.warn(
        "no route protects anything: every request is passed through, and a retry runs again")
    }
    if policyPage != nil, policyDocument == .off {
      document["policy_page"]?.warn(
        "leads nobody anywhere, since policy_document is off; take one of the two out")
    }
    if jwt != nil, !routes.contains(where: \.knowsCallersByToken) {
      document["jwt"]?.warn(
        "is unused: no protected route has a part such as jwt:sub, so that no token is verified; name one, or take "
          + "this out")
    }
    if upstreams.count > 1, !routes.contains(where: \.takesEveryRequest) {
      (document["routes"] ?? document["upstreams"])?.warn(
        "there are several upstreams, and no route that takes every request: "
          + "what meets no route cannot be passed through")
    }
  }
}

extension RoutePolicy {
  var countsCertificates: Bool { caller?.parts.contains { $0.isCertificate } ?? false }

  fileprivate var knowsCallersByToken: Bool {
    isProtected && caller?.parts.contains(where: \.isOfToken) == true
  }

  fileprivate var takesEveryRequest: Bool { match == RouteMatch() && methods == .all }
}

extension Notation<TrustedProxies> {
  private static let wanted = "an address or a block such as 10.0.0.0/8"

  /// Blocks of addresses, and `unix` for peers on Unix sockets.
  fileprivate static let proxies = Notation(
    values: "a list such as [10.0.0.0/8, unix]",
    read: { member in
      let list = member.list("a list such as [10.0.0.0/8]", of: wanted) {
        text throws(Refusal) -> AddressBlock? in
        text == "unix" ? nil : try AddressBlock.parse(text)
      }
      return list.map { TrustedProxies(blocks: $0.compactMap(\.self), includesUnixSockets: $0.contains(nil)) }
    }, show: { .texts($0.blocks.map(\.text) + ($0.includesUnixSockets ? ["unix"] : [])) })
}

extension AddressBlock {
  fileprivate var text: String {
    guard prefix < 128 else { return first.text }
    return "\(first.text)/\(first.isIPv4 && prefix >= 96 ? prefix - 96 : prefix)"
  }
}

extension Notation<String> {
  /// The URL of a page for people. A fragment would take the place of the code's.
  fileprivate static let page = Notation.text(
    "the URL of a page", values: "an http or https URL", show: { .text($0) }
  ) { text throws(Refusal) in
    let rest = ["https://", "http://"].first { text.hasPrefix($0) }.map { text.dropFirst($0.count) }
    guard let rest, let host = rest.split(separator: "/", omittingEmptySubsequences: false).first,
      !host.isEmpty,
      rest.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !rest.contains("#"), !host.contains("@")
    else {
      throw Refusal(
        "must be an http or https URL without a fragment, such as https://docs.example.com/problem-codes")
    }
    return text
  }
}
