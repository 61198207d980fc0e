import NIOCore
import Wire

/// The routes in the order of the configuration. A request takes the first route that matches.
public struct RouteTable: Sendable {
  /// A route with its conditions, prepared once for matching.
  ///
  /// A class, so that a search does not copy the conditions of the routes that it passes.
  fileprivate final class Entry: Sendable {
    let route: Route
    let methods: MethodSet
    let host: HostPattern?
    let path: PathMatcher?
    let headers: [RequiredHeader]
    let graphql: RouteMatch.GraphQL?

    init(_ route: Route) {
      let policy = route.policy
      self.route = route
      methods = policy.methods
      host = policy.match.host.map(HostPattern.init)
      path = policy.match.path.map { PathMatcher($0, spelling: policy.spelling) }
      headers = policy.match.headers
      graphql = policy.match.graphql
    }
  }

  private let entries: [Entry]
  /// The names of all fields in which any route looks for its whole key, in lower case.
  private let keyFields: [String]
  /// The names of all fields with a key or a part of one that no preflight has, in lower case.
  private let fieldsOutsidePreflights: [String]
  /// Whether any route lets pages of other origins read Semel's own responses.
  public let listsOrigins: Bool
  /// Whether any route takes encoded slashes for characters of their segments.
  public let keepsSlashes: Bool
  /// The places of the tokens by which any route knows its callers.
  public let tokenPlaces: [TokenPlace]

  /// Prepares routes for matching, in the order given.
  ///
  /// - Parameters:
  ///   - number: The function that returns the number for the metrics of all routes with one name.
  public init(_ policies: [RoutePolicy], number: (String) -> Int = { _ in 0 }) {
    entries = policies.enumerated().map { index, policy in
      Entry(Route(policy: policy, index: index, number: number(policy.name)))
    }
    keepsSlashes = policies.contains(where: \.keepsSlashes)
    tokenPlaces = Array(Set(entries.flatMap(\.route.tokenPlaces)))
    let names = policies.flatMap(\.key.from).compactMap { source in
      if case .header(let name) = source { name } else { nil }
    }
    listsOrigins = policies.contains { $0.cors?.origins.isEmpty == false }
    keyFields = Array(Set(names + ["idempotency-key"])).sorted()
    let parts = policies.flatMap(\.key.from).flatMap(\.fieldsOutsidePreflights)
    fieldsOutsidePreflights = Array(Set(parts + keyFields)).sorted()
  }

  public var routes: [Route] { entries.map(\.route) }

  /// The first route that matches, as `FormatSuffix` has it; `nil` if none does. Allocates nothing.
  ///
  /// - Parameters:
  ///   - method: The method, compared exactly.
  ///   - host: The host without its port, compared without regard to letter case.
  ///   - path: The normalised path.
  ///   - operation: The GraphQL operation; a route for mutations takes what has not been read.
  public func route(
    for head: MessageHead, method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer,
    path: UnsafeRawBufferPointer, operation: GraphQLOperation = .unread
  ) -> Route? {
    FormatSuffix.choose(path, policy: \.policy, isEnforced: { $0.policy.isEnforced }) { path in
      for entry in entries where entry.fits(head, method: method, host: host, path: path, operation) {
        return entry.route
      }
      return nil
    }
  }

  /// The protected route that requests to a documented operation meet, and whether all of them do; `nil` if none does.
  /// A route that depends on fields, on the body, or on a host that is not known takes some of them alone.
  ///
  /// - Parameters:
  ///   - host: The host without its port; `nil` if it is not known.
  ///   - path: A path for which any other with the same literal segments may stand.
  public func documented(
    method: String, host: String?, path: String
  ) -> (policy: RoutePolicy, isCertain: Bool)? {
    let found: (policy: RoutePolicy, isCertain: Bool)? = Array(path.utf8).withUnsafeBytes { path in
      FormatSuffix.choose(path, policy: \.policy, isEnforced: { $0.policy.isEnforced }) { path in
        var isCertain = true
        for entry in entries where entry.fits(method: method, host: host, path: path) {
          let isConditional =
            !entry.headers.isEmpty || entry.graphql != nil || entry.host != nil && host == nil
          if isConditional { isCertain = false }
          if entry.route.policy.isEnforced || !isConditional { return (entry.route.policy, isCertain) }
        }
        return nil
      }
    }
    return found?.policy.isEnforced == true ? found : nil
  }

  /// Whether any route matches the path as it is, without regard to its suffix.
  func fits(
    _ head: MessageHead, method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer,
    path: UnsafeRawBufferPointer, _ operation: GraphQLOperation
  ) -> Bool {
    entries.contains { $0.fits(head, method: method, host: host, path: path, operation) }
  }

  /// The first enforced route for the request's host and fields whose methods and path satisfy a condition; `nil` if
  /// there is none.
  func protectingRoute(
    _ head: MessageHead, host: ByteBuffer, where condition: (MethodSet, PathMatcher?) -> Bool
  ) -> Route? {
    host.withUnsafeReadableBytes { host in
      entries.first { entry in
        entry.route.policy.isEnforced && entry.host?.matches(host) ?? true
          && entry.headers.allSatisfy { head.has($0) } && condition(entry.methods, entry.path)
      }?.route
    }
  }

  /// Whether a route protects requests of any method with this host and path, and these fields.
  func isProtected(_ head: MessageHead, _ host: ByteBuffer, _ path: ByteBuffer) -> Bool {
    let route = host.withUnsafeReadableBytes { host in
      path.withUnsafeReadableBytes { path in
        FormatSuffix.choose(path, policy: \.policy, isEnforced: \.isEnforced) { path in
          entries.first { entry in
            (entry.route.isEnforced || entry.methods == .all) && entry.fits(head, host: host, path: path)
          }?.route
        }
      }
    }
    return route?.isEnforced == true
  }

  /// The first route that would match the request that a preflight announces; `nil` if none would. A field that a route
  /// requires counts where its name is announced, since its value is not.
  ///
  /// - Parameter method: The method of that request.
  func route(
    announcedBy preflight: Preflight, method: ByteBuffer, host: ByteBuffer, path: ByteBuffer
  ) -> Route? {
    method.withUnsafeReadableBytes { method in
      host.withUnsafeReadableBytes { host in
        path.withUnsafeReadableBytes { path in
          FormatSuffix.choose(path, policy: \.policy, isEnforced: { $0.policy.isEnforced }) { path in
            entries.first { entry in
              entry.fits(method: method, host: host, path: path)
                && entry.headers.allSatisfy { preflight.fields.contains($0.name) }
            }?.route
          }
        }
      }
    }
  }

  /// Whether the request has a key in a field in which any route looks for its own whole key.
  public func carriesKey(_ head: MessageHead) -> Bool { keyFields.contains { head.hasKey(in: $0) } }

  /// The preflight that the request is; `nil` for any other request.
  ///
  /// A preflight has no fields of the page's own, so that a request in its form with a key in a field, or with a part
  /// of one, is an ordinary request.
  public func preflight(_ head: MessageHead) -> Preflight? {
    guard let preflight = Preflight(head), !fieldsOutsidePreflights.contains(where: { head.hasKey(in: $0) })
    else { return nil }
    return preflight
  }
}

extension RouteTable.Entry {
  fileprivate func fits(
    _ head: MessageHead, method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer,
    path: UnsafeRawBufferPointer, _ operation: GraphQLOperation
  ) -> Bool {
    guard methods.contains(method), graphql == nil || operation != .other else { return false }
    return fits(head, host: host, path: path)
  }

  /// Whether all but the method and the body of a request fits.
  fileprivate func fits(
    _ head: MessageHead, host: UnsafeRawBufferPointer, path: UnsafeRawBufferPointer
  ) -> Bool {
    guard self.host?.matches(host) ?? true, self.path?.matches(path) ?? true else { return false }
    return headers.isEmpty || headers.allSatisfy { head.has($0) }
  }

  /// Whether all but the fields and the body of a documented request fits.
  fileprivate func fits(method: String, host: String?, path: UnsafeRawBufferPointer) -> Bool {
    Array(method.utf8).withUnsafeBytes(methods.contains) && self.path?.matches(path) ?? true
      && host.map { Array($0.utf8).withUnsafeBytes { self.host?.matches($0) ?? true } } ?? true
  }

  /// Whether all but the fields and the body of a request fits.
  fileprivate func fits(
    method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer, path: UnsafeRawBufferPointer
  ) -> Bool {
    methods.contains(method) && self.host?.matches(host) ?? true && self.path?.matches(path) ?? true
  }
}

extension MessageHead {
  /// Whether a field, given in lower case, has a key or a part of one. An empty value is none, nor is an empty string
  /// in quotation marks.
  fileprivate func hasKey(in name: String) -> Bool {
    switch find(name) {
    case .absent: false
    case .once(let value): !value.isEmpty && !withBytes(value) { $0.elementsEqual("\"\"".utf8) }
    case .repeated: true
    }
  }

  /// Whether one of the field's lines has the value.
  fileprivate func has(_ header: RequiredHeader) -> Bool {
    fields(named: header.name).contains { field in
      Int(field.valueLength) == header.value.utf8.count
        && withBytes(field.valueRange) { $0.elementsEqual(header.value.utf8) }
    }
  }
}

/// The hosts of a route: one name, or all names below one (`*.example.com`).
public struct HostPattern: Hashable, Sendable {
  /// The name in lower case; for a wildcard, the part after the asterisk, with its dot.
  private let name: [UInt8]
  private let isWildcard: Bool

  public init(_ text: String) {
    isWildcard = text.hasPrefix("*.")
    name = text.utf8.dropFirst(isWildcard ? 1 : 0).map(ASCII.lowercased)
  }

  /// Whether a host without its port matches, regardless of its letter case. A wildcard stands for one or more labels.
  public func matches(_ host: UnsafeRawBufferPointer) -> Bool {
    guard isWildcard ? host.count > name.count : host.count == name.count else { return false }
    let tail = UnsafeRawBufferPointer(rebasing: host.suffix(name.count))
    return name.withUnsafeBytes { ASCII.equalsIgnoringCase($0, tail) }
  }

  /// Whether this pattern matches every host that another pattern matches.
  func covers(_ other: HostPattern) -> Bool {
    guard other.isWildcard else { return other.name.withUnsafeBytes(matches) }
    return isWildcard && other.name.count >= name.count && other.name.suffix(name.count) == name[...]
  }
}
