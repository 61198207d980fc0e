import NIOCore
import Wire

extension RouteTable {
  /// The route of a request, and the method by which it is identified.
  public struct Choice: Sendable {
    public let route: Route?
    /// The method that enters the record's id and the fingerprint.
    public let method: ByteBuffer
    /// Whether the route is met only if the body selects a mutation, or a form in it may name another method: choose
    /// again when it has been read.
    public let isUndecided: Bool
  }

  /// Chooses the route of a request, or refuses a request that two backends may run by different methods.
  ///
  /// - Parameters:
  ///   - host: The host without its port.
  ///   - path: The normalised path.
  ///   - operation: The GraphQL operation that the body selects, if it has been read for that.
  ///   - form: The methods that a form in the body names, if it has been read for that.
  public func choice(
    for head: MessageHead, host: ByteBuffer, path: ByteBuffer, query: ByteBuffer? = nil,
    operation: GraphQLOperation = .unread, form: MethodParameter.Form = .unread
  ) throws(Problem) -> Choice {
    let written = head.slice(head.methodRange)
    let own = route(for: head, method: written, host: host, path: path, operation: operation)
    if head.method == .other { try refuseOtherCase(head, written, host, path) }
    let override = MethodOverride(head, query: query, form: form)
    let overriding = try overriding(own, override, for: head, host: host, path: path, operation)
    if form == .unread, let route = routeOfForm(own, method: written, for: head, host: host, path: path) {
      return Choice(route: route, method: written, isUndecided: true)
    }
    let route = overriding?.route ?? own
    return Choice(
      route: route, method: overriding?.method ?? written,
      isUndecided: operation == .unread && route?.policy.match.graphql != nil)
  }

  /// The choice for a request that is there whole: its body is read where the choice depends on the operation in it.
  ///
  /// - Parameter host: The host without its port.
  /// - Throws: `requestTooLarge` for a body that an enforced route would have to read, and does not.
  public func choice(
    for head: MessageHead, host: ByteBuffer, target: RequestTarget, body: ByteBuffer
  ) throws(Problem) -> Choice {
    let undecided = try choice(for: head, host: host, path: target.path, query: target.query)
    guard undecided.isUndecided, let policy = undecided.route?.policy else { return undecided }
    guard body.readableBytes <= policy.maxRequestBody else {
      // A shadowed route refuses nothing, and forwards the request.
      if policy.shadow { return undecided }
      throw .requestTooLarge(limit: policy.maxRequestBody)
    }
    let operation = GraphQLOperation(of: body, head: head, query: target.query)
    return try choice(
      for: head, host: host, path: target.path, query: target.query, operation: operation,
      form: .read(MethodParameter.values(inBody: body, head)))
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
    if policy.isEnforced || !policy.shadow && !policy.match.methods.isEmpty { throw .badRequest(.methodCase) }
  }

  /// The protected route of a request with this method; `nil` if no route protects it.
  func protectedRoute(
    for head: MessageHead, method: ByteBuffer, host: ByteBuffer, path: ByteBuffer
  ) -> Route? {
    let route = route(for: head, method: method, host: host, path: path)
    return route?.policy.isEnforced == true ? route : nil
  }

  /// The first route that matches a request with this method; `nil` if none does.
  public func route(
    for head: MessageHead, method: ByteBuffer, host: ByteBuffer, path: ByteBuffer,
    operation: GraphQLOperation = .unread
  ) -> Route? {
    method.withUnsafeReadableBytes { method in
      host.withUnsafeReadableBytes { host in
        path.withUnsafeReadableBytes { path in
          route(for: head, method: method, host: host, path: path, operation: operation)
        }
      }
    }
  }
}
