import NIOCore
import Wire

/// The routes in the order of the configuration. A request takes the first route that matches.
public struct RouteTable: Sendable {
  /// A route with its conditions, prepared once for matching.
  fileprivate struct Entry: Sendable {
    let route: Route
    let methods: MethodSet
    let host: HostPattern?
    let path: PathMatcher?
    let headers: [RequiredHeader]
  }

  private let entries: [Entry]
  /// The names of all fields in which any route looks for its key, in lower case.
  private let keyFields: [String]

  /// Prepares routes for matching, in the order given.
  ///
  /// - Parameters:
  ///   - number: The function that returns the number for the metrics of all routes with one name.
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

  /// The first route that matches; `nil` if none does. Allocates nothing.
  ///
  /// - Parameters:
  ///   - method: The method, compared exactly.
  ///   - host: The host without its port, compared without regard to letter case.
  ///   - path: The normalised path.
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
  /// Whether one of the field's lines has the value.
  fileprivate func has(_ header: RequiredHeader) -> Bool {
    fields(named: header.name).contains { field in
      withBytes(field.valueRange) { $0.elementsEqual(header.value.utf8) }
    }
  }
}
