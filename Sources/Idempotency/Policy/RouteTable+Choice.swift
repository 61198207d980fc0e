import NIOCore
import Wire

extension RouteTable {
  /// The route of a request, and the method by which its record is found.
  public struct Choice: Sendable {
    public let route: Route?
    public let method: ByteBuffer
  }

  /// The route of a request, or the refusal of one whose method two readers may take for different ones.
  ///
  /// - Parameters:
  ///   - host: without its port.
  ///   - path: normalised.
  public func choice(for head: MessageHead, host: ByteBuffer, path: ByteBuffer) throws(Problem) -> Choice {
    let written = head.slice(head.methodRange)
    let route = route(for: head, method: written, host: host, path: path)
    if head.method == .other { try refuseOtherCase(head, written, host, path) }
    guard !head.names.isDisjoint(with: .methodOverrides) else { return Choice(route: route, method: written) }
    return try overridden(head, written, host, path, route)
  }

  /// Refuses a method that differs from a route's only in letter case: some backends would run it.
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

  /// A request with an overriding method matches by that and by its own, and is protected where either is.
  ///
  /// The policy of the overriding one goes first, since the backends for which the field is meant act by it. Both enter
  /// the record's id: it depends on the backend which of them counts.
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
    // No method contains a space.
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
