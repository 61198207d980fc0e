import Idempotency
import TLS
import Wire

extension Settings {
  /// Reads all members of the document.
  mutating func read(_ document: Section) {
    readListeners(document)
    // The limit is higher than the number of any machine's cores, and each loop costs descriptors and memory.
    document.integer("workers", into: &workers, in: 0...1024)
    document.duration("drain_delay", into: &drainDelay)
    document.duration("shutdown_grace", into: &shutdownGrace)
    if let member = document.member("trusted_proxies") { trustedProxies.read(member) }
    document.choice("unmatched_keys", into: &unmatchedKeys)
    document.choice("underscores", into: &underscores)
    let upstreamNames = readUpstreams(document)
    document.section("store") { store.read($0) }
    document.section("limits") { limits.read($0) }
    document.section("log") { log.read($0) }
    document.section("tracing") { tracing = TracingSettings.read($0) }
    document.refuseUnsupported("jwt")
    document.refuseUnsupported("policy_document", neutral: "off")
    document.choice("readiness", into: &readiness)
    document.flag("allow_identity_change", into: &allowsIdentityChange)
    routes =
      RouteReader(
        upstreams: upstreams, upstreamNames: upstreamNames, bodyMemory: limits.bodyMemory,
        storeTimeout: store.timeout, underscores: underscores,
        requestsCertificates: listen.contains { $0.tls?.clientCA != nil }
      ).read(document)
    warn(document)
  }

  private mutating func readListeners(_ document: Section) {
    var taken: [ServerAddress: String] = [:]
    if let items = document.member("listen")?.items("a list such as [{address: \"127.0.0.1:8080\"}]") {
      if items.isEmpty {
        document["listen"]?.refuse("must name an address, such as [{address: \"127.0.0.1:8080\"}]")
      }
      listen = items.compactMap { item in
        var settings: ListenSettings?
        item.section { section in
          settings = ListenSettings.read(section)
          guard let settings, let address = section["address"] else { return }
          Self.refuseTaken(settings.address, address, &taken)
        }
        return settings
      }
    } else {
      for listener in listen { taken[listener.address] = "the default of listen" }
    }
    document.section("admin") { section in
      admin = AdminSettings.read(section)
      guard let admin, let address = section["address"] else { return }
      Self.refuseTaken(.tcp(host: admin.host, port: admin.port), address, &taken)
    }
  }

  private static func refuseTaken(
    _ settings: ServerAddress, _ address: Value, _ taken: inout [ServerAddress: String]
  ) {
    // Port 0 is another port each time.
    if case .tcp(_, 0) = settings { return }
    if let other = taken[settings] { address.refuse("is taken by \(other); write another address") }
    taken[settings] = address.path
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
    if upstreams.count > 1, !routes.contains(where: \.takesEveryRequest) {
      (document["routes"] ?? document["upstreams"])?.warn(
        "there are several upstreams, and no route that takes every request: "
          + "what meets no route cannot be passed through")
    }
  }
}

extension RoutePolicy {
  fileprivate var takesEveryRequest: Bool { match == RouteMatch() && methods == .all }
}
