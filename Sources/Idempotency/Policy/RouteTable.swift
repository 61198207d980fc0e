import Wire

/// The routes in the order of the configuration: a request meets the first whose match fits.
public struct RouteTable: Sendable {
  /// A route and its match as bytes, made once.
  fileprivate struct Entry: Sendable {
    let route: Route
    let methods: [[UInt8]]
    let host: [UInt8]?
    let path: PathPattern?
  }

  private let entries: [Entry]

  /// - Parameters:
  ///   - number: what a route of this name is counted under.
  public init(_ policies: [RoutePolicy], number: (String) -> Int = { _ in 0 }) {
    entries = policies.enumerated().map { index, policy in
      Entry(
        route: Route(policy: policy, index: index, number: number(policy.name)),
        methods: policy.match.methods.map { Array($0.utf8) },
        host: policy.match.host.map { $0.utf8.map(ASCII.lowercased) }, path: policy.match.path)
    }
  }

  public var routes: [Route] { entries.map(\.route) }

  /// The first route that fits, or `nil`. Allocates nothing.
  ///
  /// `method` is compared as it is spelt, `host` (without its port) in any letter case, `path` has to be
  /// normalised.
  public func route(
    method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer, path: UnsafeRawBufferPointer
  ) -> Route? {
    for entry in entries where entry.fits(method: method, host: host, path: path) { return entry.route }
    return nil
  }
}

extension RouteTable.Entry {
  fileprivate func fits(
    method: UnsafeRawBufferPointer, host: UnsafeRawBufferPointer, path: UnsafeRawBufferPointer
  ) -> Bool {
    if !methods.isEmpty, !methods.contains(where: { $0.elementsEqual(method) }) { return false }
    if let wanted = self.host {
      let fits = wanted.withUnsafeBytes { ASCII.equalsIgnoringCase($0, host) }
      guard fits else { return false }
    }
    return self.path?.matches(path) ?? true
  }
}
