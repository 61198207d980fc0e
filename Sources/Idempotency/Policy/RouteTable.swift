import NIOCore
import Wire

/// The routes in the order of the configuration: a request meets the first whose match fits.
public struct RouteTable: Sendable {
  /// A route and its match, prepared once.
  fileprivate struct Entry: Sendable {
    let route: Route
    let methods: MethodSet
    let host: HostPattern?
    let path: PathMatcher?
    let headers: [RequiredHeader]
  }

  private let entries: [Entry]
  /// The names of all fields in which a route looks for its key, in lower case.
  private let keyFields: [String]

  /// - Parameters:
  ///   - number: what a route of this name is counted under.
  public init(_ policies: [RoutePolicy], number: (String) -> Int = { _ in 0 }) {
    entries = policies.enumerated().map { index, policy in
      Entry(
        route: Route(policy: policy, index: index, number: number(policy.name)), methods: policy.methods,
        host: policy.match.host.map(HostPattern.init),
        path: policy.match.path.map { PathMatcher($0, spelling: policy.spelling) },
        headers: policy.match.headers)
    }
    let names = policies.flatMap(\.key.from).compactMap { source in
      if case .header(let name) = source { name } else { nil }
    }
    keyFields = Array(Set(names + ["idempotency-key"])).sorted()
  }

  public var routes: [Route] { entries.map(\.route) }

  /// The first route that fits, or `nil`. Allocates nothing.
  ///
  /// `method` is compared as it is spelt, `host` (without its port) in any letter case, `path` has to be
  /// normalised.
  public func route(
    for head: MessageHead, method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer,
    path: UnsafeRawBufferPointer
  ) -> Route? {
    for entry in entries where entry.fits(head, method: method, host: host, path: path) { return entry.route }
    return nil
  }

  /// Whether the request has a value in a field in which any route looks for its key.
  public func carriesKey(_ head: MessageHead) -> Bool {
    keyFields.contains { name in
      switch head.find(name) {
      case .absent: false
      case .once(let value): !value.isEmpty
      case .repeated: true
      }
    }
  }
}

extension RouteTable.Entry {
  fileprivate func fits(
    _ head: MessageHead, method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer,
    path: UnsafeRawBufferPointer
  ) -> Bool {
    guard methods.contains(method), self.host?.matches(host) ?? true, self.path?.matches(path) ?? true else {
      return false
    }
    return headers.isEmpty || headers.allSatisfy { head.has($0) }
  }
}

extension MessageHead {
  /// Whether a line of the field has the value.
  fileprivate func has(_ header: RequiredHeader) -> Bool {
    fields(named: header.name).contains { field in
      withBytes(field.valueRange) { $0.elementsEqual(header.value.utf8) }
    }
  }
}
