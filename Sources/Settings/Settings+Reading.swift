import Idempotency
import TLS
import Wire

extension Settings {
  /// Reads all members of the document.
  mutating func read(_ document: Section) {
    let listeners = readListeners(document)
    // The limit is higher than the number of any machine's cores, and each loop costs descriptors and memory.
    document.integer("workers", into: &workers, in: 0...1024)
    document.duration("drain_delay", into: &drainDelay)
    document.duration("shutdown_grace", into: &shutdownGrace)
    if let member = document.member("trusted_proxies") { trustedProxies.read(member) }
    document.choice("unmatched_keys", into: &unmatchedKeys)
    document.choice("underscores", into: &underscores)
    let upstreamNames = readUpstreams(document)
    document.section("store") { store.read($0) }
    var bodyMemoryMember: Value?
    document.section("limits") { section in
      limits.read(section)
      bodyMemoryMember = section["body_memory"]
    }
    document.section("log") { log.read($0) }
    document.section("tracing") { tracing = TracingSettings.read($0) }
    document.section("jwt") { jwt = JWTSettings.read($0) }
    document.choice("policy_document", into: &policyDocument)
    document.choice("readiness", into: &readiness)
    document.flag("allow_identity_change", into: &allowsIdentityChange)
    routes =
      RouteReader(
        upstreams: upstreams, upstreamNames: upstreamNames, bodyMemory: limits.bodyMemory,
        bodyMemoryMember: bodyMemoryMember,
        storeTimeout: store.timeout, underscores: underscores,
        requestsCertificates: listen.contains { $0.tls?.clientCA != nil },
        namesTokenKeys: document["jwt"] != nil, issuer: jwt?.rules.issuer
      ).read(document)
    refuseMixedAuthorities(listeners)
    warn(document)
  }

  /// Reads the listeners. Returns the TLS sections of those that were read, in the order of `listen`.
  private mutating func readListeners(_ document: Section) -> [Value?] {
    var secured: [Value?] = []
    var taken: [(address: ServerAddress, place: String)] = []
    if let items = document.member("listen")?.items("a list such as [{address: \"127.0.0.1:8080\"}]") {
      if items.isEmpty {
        document["listen"]?.refuse("must name an address, such as [{address: \"127.0.0.1:8080\"}]")
      }
      listen = items.compactMap { item in
        var settings: ListenSettings?
        item.section { section in
          settings = ListenSettings.read(section)
          if settings != nil { secured.append(section["tls"]) }
          guard let settings, let address = section["address"] else { return }
          Self.refuseTaken(settings.address, address, &taken)
        }
        return settings
      }
    } else {
      taken = listen.map { ($0.address, "the default of listen") }
    }
    document.section("admin") { section in
      admin = AdminSettings.read(section)
      guard let admin, let address = section["address"] else { return }
      Self.refuseTaken(.tcp(host: admin.host, port: admin.port), address, &taken)
    }
    return secured
  }

  /// Refuses listeners with different authorities that have no name, where callers are known by their certificates: two
  /// clients with the same name, each certified by one of the authorities, would be one caller.
  private func refuseMixedAuthorities(_ secured: [Value?]) {
    guard routes.contains(where: { $0.idempotency != .off && $0.countsCertificates }) else { return }
    var first: (authority: String, path: String)?
    for (listener, section) in zip(listen, secured) {
      guard let files = listener.tls, let authority = files.clientCA, files.clientCAName == nil, let section
      else { continue }
      if first == nil { first = (authority, section.path) }
      guard let first, first.authority != authority else { continue }
      section.refuse(
        "has another client_ca than \(first.path), and a route knows callers by their certificates: who gets the "
          + "same name from both authorities would be one caller; write a client_ca_name of its own, which makes its "
          + "clients new callers, or the same one in both")
    }
  }

  private static func refuseTaken(
    _ address: ServerAddress, _ member: Value, _ taken: inout [(address: ServerAddress, place: String)]
  ) {
    if let other = taken.first(where: { $0.address.excludes(address) }) {
      member.refuse(
        other.address == address
          ? "is taken by \(other.place); write another address"
          : "cannot be beside \(other.place), \(other.address), which has its port and an address in common; write "
            + "another port")
    }
    taken.append((address, member.path))
  }

  /// Reads the upstreams, and returns the names of all of them in the file's order, including those with an error.
  private mutating func readUpstreams(_ document: Section) -> [String] {
    let example = "{backend: {url: \"http://127.0.0.1:9000\"}}"
    guard let upstreams = document.member("upstreams") else {
      document.refuseMissing("upstreams", "is missing: name a backend, such as \(example)")
      return []
    }
    guard let members = upstreams.members("a mapping such as \(example)") else { return [] }
    if members.isEmpty { upstreams.refuse("must name a backend, such as \(example)") }
    for (name, value) in members {
      do throws(Refusal) {
        _ = try Identifier.parse(name)
      } catch {
        value.reader.refuse(value.path, at: value.keyPosition, error.message)
      }
      value.section { self.upstreams[name] = UpstreamSettings.read($0, name: name) }
    }
    return members.map(\.name)
  }

  /// Warns of upstreams that are listeners of this Semel.
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
      let (grace, response) = (TimeSpan.text(shutdownGrace), TimeSpan.text(longest))
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
    if jwt != nil, !routes.contains(where: \.knowsCallersByToken) {
      document["jwt"]?.warn(
        "is unused: no protected route has a part such as jwt:sub, so that no token is verified; name one, or take "
          + "this out")
    }
    if allowsIdentityChange {
      document["allow_identity_change"]?.warn(
        "stays in force: take it out again once this configuration runs, or a later change by mistake is accepted, too"
      )
    }
    if upstreams.count > 1, !routes.contains(where: \.takesEveryRequest) {
      (document["routes"] ?? document["upstreams"])?.warn(
        "there are several upstreams, and no route that takes every request: "
          + "what meets no route cannot be passed through")
    }
  }
}

extension RoutePolicy {
  /// Whether a client's certificate is a part of its caller.
  var countsCertificates: Bool { caller?.parts.contains { $0.isCertificate } ?? false }

  fileprivate var knowsCallersByToken: Bool {
    isProtected && caller?.parts.contains(where: \.isOfToken) == true
  }

  fileprivate var takesEveryRequest: Bool { match == RouteMatch() && methods == .all }
}
