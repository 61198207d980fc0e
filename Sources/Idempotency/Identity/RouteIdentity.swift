import Wire

/// A route as text, as far as requests find their records by it. Configurations are compared by this text, and a
/// namespace keeps it. The header values that a route requires are kept as digests, since they may be secrets.
public struct RouteIdentity: Codable, Hashable, Sendable {
  public let name: String
  let methods: [String]
  let path: String?
  let host: String?
  /// The fields that a request must have, each as its name, a colon and a digest of its value.
  let headers: [String]
  /// The kind of GraphQL operation; `nil` for a route that matches without regard to it.
  let graphql: String?
  let spelling: String
  /// Whether the route is only observed; `nil` if it is not.
  let shadow: Bool?
  /// The caller's parts; `nil`, like the members below, for a route that protects nothing.
  let caller: [String]?
  /// The treatment of a missing part, for earlier versions, which compare it; `nil` for a shared caller.
  let anonymous: String?
  let keys: [String]?
  /// The places of a batch's items and of their keys, if the route takes batches.
  let batch: [String]?
  /// The recipe of the fingerprint if that may be a key.
  let fingerprint: String?
  let endpoint: String?
  /// `any` if all hosts have the same ids, else `nil`.
  let endpointHost: String?
  public let upstream: String?

  public init(_ policy: RoutePolicy) {
    name = policy.name
    methods = policy.match.methods
    path = policy.match.path?.text
    host = policy.match.host
    headers = policy.match.headers.map { "\($0.name):\(Self.digest(of: $0.value))" }
    graphql = policy.match.graphql?.rawValue
    spelling = policy.spelling.rawValue
    shadow = policy.shadow ? true : nil
    // Without a caller all members of a protected route's identity are left out.
    let caller = policy.isEnforced ? policy.caller : nil
    let takesPayloads = policy.key.from.contains(.payload)
    self.caller = caller?.parts.map(\.text)
    anonymous = caller.flatMap { $0.isShared ? nil : $0.anonymous.rawValue }
    keys = caller.map { _ in policy.key.from.map(\.text) }
    batch = caller.flatMap { _ in policy.batch.map { [$0.items, $0.key] } }
    fingerprint = caller.flatMap { _ in takesPayloads ? policy.recipe.ofKeys.text : nil }
    endpoint = caller.map { _ in policy.endpoint.rawValue }
    endpointHost = caller.flatMap { _ in policy.endpointHost == .any ? policy.endpointHost.rawValue : nil }
    upstream = caller.map { _ in policy.upstream.name }
  }

  /// A digest of 64 bits.
  private static func digest(of value: String) -> String {
    String(Digest256.sha256(of: Array(value.utf8)).hexText.prefix(16))
  }

  public var isShadowed: Bool { shadow == true }

  /// Whether requests rely on the route's records.
  public var isProtected: Bool { caller != nil }

  /// Whether the route knows any of its callers by a client's certificate.
  public var countsCertificates: Bool { caller?.contains { $0.contains("client_certificate") } ?? false }
}

extension RouteIdentity {
  /// The requests that a route matches, besides the safe methods of `takesSafeMethods`. The order in which a file lists
  /// methods and fields does not matter.
  struct Requests: Hashable {
    let methods: Set<String>
    let path: String?
    let host: String?
    let headers: Set<String>
    let graphql: String?
    let spelling: String
  }

  var requests: Requests {
    // Earlier versions kept an IPv6 address as it was written.
    let host = host.map { IPAddress(literal: $0)?.literal ?? $0 }
    return Requests(
      methods: Set(methods), path: path, host: host, headers: Set(headers), graphql: graphql,
      spelling: spelling)
  }

  /// Whether the route takes all methods, since it is off and lists none.
  var takesSafeMethods: Bool { methods.isEmpty && !isProtected && !isShadowed }

  /// The first segments of the path, as far as they have one meaning in each spelling, with `nil` for a placeholder.
  /// A literal is in lower case and ends before its first point, since a suffix may be one of a format.
  var literals: [String?] {
    var literals: [String?] = []
    for segment in (path ?? "").split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
      if segment.hasPrefix("{"), segment.hasSuffix("}") {
        literals.append(nil)
        continue
      }
      let name = segment.prefix { $0 != "." }
      let isPlain = name.utf8.allSatisfy { ASCII.isLetter($0) || "0123456789-_".utf8.contains($0) }
      guard isPlain, !name.isEmpty else { break }
      literals.append(name.lowercased())
    }
    return literals
  }

  /// The end of a path, as far as it decides on paths with a format suffix. A route for all paths has no segments.
  struct PathEnding {
    /// The number of segments before `**`, without empty ones.
    var count = 0
    /// Whether any further segments may follow.
    var isOpen = true
    /// Whether the last of the segments is a literal.
    var isLiteral = false
    /// Whether it is one with a format suffix.
    var namesFormat = false
    var isExact = false

    /// The number of segments of a path that the route also takes with a format suffix, which its own pattern does not
    /// fit; `nil` if there is none.
    var meantDepth: Int? { isExact || !isLiteral ? nil : count }

    /// Whether a path of so many segments, the last with a format suffix, may fit.
    func fits(_ depth: Int) -> Bool {
      // An exact path may have empty segments.
      if isExact { return true }
      if count < depth { return isOpen }
      return count == depth && (namesFormat || !isLiteral)
    }
  }

  var ending: PathEnding {
    var ending = PathEnding(isExact: spelling == RoutePolicy.Spelling.exact.rawValue)
    guard let pattern = path.flatMap({ try? PathPattern(parsing: $0) }) else { return ending }
    let segments = pattern.segments.filter { $0 != .literal([]) }
    (ending.count, ending.isOpen) = (segments.count, pattern.matchesRest)
    if case .literal(let bytes)? = segments.last {
      ending.isLiteral = true
      let path = [PathPattern.slash] + bytes
      ending.namesFormat = path.withUnsafeBytes { FormatSuffix.removed(from: $0) != nil }
    }
    return ending
  }

  /// Whether the route keeps paths with a format suffix that its own pattern fits: it is in force, or it names one.
  var takesFormats: Bool {
    let end = ending
    return isProtected || end.namesFormat && !end.isOpen
  }

  /// The requests in an operator's words, such as `POST /v1/orders`.
  public var summary: String {
    var words = [methods.isEmpty ? "any method" : methods.joined(separator: ", "), path ?? "any path"]
    if let host { words.append("at \(host)") }
    if let graphql { words.append("with a GraphQL \(graphql)") }
    return words.joined(separator: " ")
  }
}

extension RouteIdentity {
  /// The members of another protected route that give the requests of this one other ids; empty if all ids stay the
  /// same.
  ///
  /// A key source that is added after the others changes no id: a request with a key in an earlier source keeps that
  /// key, and a request without one has no record. Nor does it change an id whether a part is optional. An alternative
  /// that is added to a caller's part may change ids: callers without the earlier ones may once have been anonymous.
  public func changes(to other: RouteIdentity) -> [String] {
    var members: [String] = []
    if !keepsCallers(in: other) { members.append("caller") }
    if !(other.keys ?? []).starts(with: keys ?? []) {
      members.append("key")
    } else if let fingerprint, fingerprint != other.fingerprint {
      members.append("fingerprint")
    }
    if batch != other.batch { members.append("batch") }
    if upstream != other.upstream { members.append("upstream") }
    if endpoint != other.endpoint || endpointHost != other.endpointHost {
      members.append("endpoint")
    } else if endpoint == RoutePolicy.Endpoint.route.rawValue, name != other.name {
      members.append("name")
    }
    return members
  }

  private func keepsCallers(in other: RouteIdentity) -> Bool {
    (caller ?? []).map(Self.required) == (other.caller ?? []).map(Self.required)
  }

  /// The text of a caller's part without the mark of an optional one.
  private static func required(_ part: String) -> String {
    guard let colon = part.firstIndex(of: ":"), part[..<colon].hasSuffix("?") else { return part }
    return String(part[..<colon].dropLast()) + part[colon...]
  }
}
