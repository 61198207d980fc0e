import NIOCore
import Wire

extension RouteTable {
  /// The route of a request, and the method that enters the id of its record.
  public struct Choice: Sendable {
    public let route: Route?
    public let method: ByteBuffer
  }

  /// Chooses the route of a request, or refuses a request whose method may mean different methods to two readers.
  ///
  /// - Parameters:
  ///   - host: The host without its port.
  ///   - path: The normalised path.
  public func choice(for head: MessageHead, host: ByteBuffer, path: ByteBuffer) throws(Problem) -> Choice {
    let written = head.slice(head.methodRange)
    let route = route(for: head, method: written, host: host, path: path)
    if head.method == .other { try refuseOtherCase(head, written, host, path) }
    guard !head.names.isDisjoint(with: .methodOverrides) else { return Choice(route: route, method: written) }
    return try overridden(head, written, host, path, route)
  }

  /// Refuses a method that differs from a route's only in letter case, since some backends would execute it.
  private func refuseOtherCase(
    _ head: MessageHead, _ written: ByteBuffer, _ host: ByteBuffer, _ path: ByteBuffer
  ) throws(Problem) {
    let text = String(buffer: written)
    let capitals = text.uppercased()
    guard capitals != text,
      let policy = route(for: head, method: ByteBuffer(string: capitals), host: host, path: path)?.policy
    else { return }
    if policy.isProtected || !policy.match.methods.isEmpty { throw .badRequest(.methodCase) }
  }

  /// The route of a request with an overriding method, which matches by either method and is protected if either route
  /// is.
  ///
  /// The overriding method's route takes precedence, since the backends for which the field is meant use that method.
  /// Both methods enter the record's id, because it depends on the backend which of them counts.
  private func overridden(
    _ head: MessageHead, _ written: ByteBuffer, _ host: ByteBuffer, _ path: ByteBuffer, _ own: Route?
  ) throws(Problem) -> Choice {
    let methods = Set(head.listElements(of: .methodOverrides).map { $0.uppercased() })
      .subtracting([String(buffer: written)]).sorted()
    let routes = methods.compactMap {
      route(for: head, method: ByteBuffer(string: $0), host: host, path: path)
    }
    let candidates = routes + (own.map { [$0] } ?? [])
    guard let method = methods.first, let route = candidates.first(where: \.policy.isProtected) else {
      return Choice(route: own, method: written)
    }
    guard methods.count == 1 else { throw .badRequest(.methodOverrides) }
    // A method cannot contain a space, so the combination is unambiguous.
    var both = written
    both.writeString(" " + method)
    return Choice(route: route, method: both)
  }

  private func route(
    for head: MessageHead, method: ByteBuffer, host: ByteBuffer, path: ByteBuffer
  ) -> Route? {
    method.withUnsafeReadableBytes { method in
      host.withUnsafeReadableBytes { host in
        path.withUnsafeReadableBytes { path in route(for: head, method: method, host: host, path: path) }
      }
    }
  }
}
