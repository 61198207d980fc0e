import NIOCore
import Wire

extension RouteTable {
  /// The route of a request, and the methods by which it is identified.
  public struct Choice: Sendable {
    public let route: Route?
    /// The method that enters the record's id.
    public let method: ByteBuffer
    /// The method that enters the fingerprint: the written one, followed by the overriding one if there is one.
    public let fingerprintMethod: ByteBuffer
    /// Whether the backend may run either of two protected methods: with a key, the request must be refused.
    public let isAmbiguous: Bool
    /// Whether the route is met only if the body selects a mutation, or a form in it may name another method: choose
    /// again when it has been read.
    public let isUndecided: Bool

    init(
      route: Route?, method: ByteBuffer, fingerprintMethod: ByteBuffer? = nil, isAmbiguous: Bool = false,
      isUndecided: Bool = false
    ) {
      self.isUndecided = isUndecided
      self.route = route
      self.method = method
      self.fingerprintMethod = fingerprintMethod ?? method
      self.isAmbiguous = isAmbiguous
    }
  }

  /// Chooses the route of a request, or refuses a request whose method may mean different methods to two readers.
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
    let choice = try choice(byFieldsOf: head, host: host, path: path, operation: operation)
    if form == .unread, let route = routeOfForm(choice, for: head, host: host, path: path) {
      return Choice(route: route, method: choice.method, isUndecided: true)
    }
    return try self.choice(choice, for: head, host: host, path: path, query: query, operation, form)
  }

  /// The choice without the parameters that name another method.
  private func choice(
    byFieldsOf head: MessageHead, host: ByteBuffer, path: ByteBuffer, operation: GraphQLOperation
  ) throws(Problem) -> Choice {
    let written = head.slice(head.methodRange)
    let route = route(for: head, method: written, host: host, path: path, operation: operation)
    if head.method == .other { try refuseOtherCase(head, written, host, path) }
    guard !head.names.isDisjoint(with: .methodOverrides) else {
      let isUndecided = operation == .unread && route?.policy.match.graphql != nil
      return Choice(route: route, method: written, isUndecided: isUndecided)
    }
    return try overridden(head, written, host, path, route, operation)
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

  /// The choice for a request with an overriding method.
  ///
  /// A backend either honours the field and runs the overriding method, or ignores it and runs the written one, and
  /// Semel cannot know which. Requests that may run the same protected method must share a record:
  ///
  /// | protected | record of | backend that honours the field | backend that ignores it |
  /// |---|---|---|---|
  /// | the written method | written | runs what no route protects | shares the plain written method's record |
  /// | the overriding one | overriding | shares the plain overriding method's record | runs what no route protects |
  /// | both | refused: 400 | a record of the written one would not stop the plain overriding one | and vice versa |
  /// | neither | passed through | | |
  ///
  /// The fingerprint names both methods. A request that shares a record with another pair of methods is therefore
  /// refused as another payload, and never gets the response of a method that it did not ask for. Fields that name
  /// several methods are refused wherever any method is protected: only the first of them are read.
  private func overridden(
    _ head: MessageHead, _ written: ByteBuffer, _ host: ByteBuffer, _ path: ByteBuffer, _ own: Route?,
    _ operation: GraphQLOperation
  ) throws(Problem) -> Choice {
    let other: String
    switch MethodOverride(head) {
    case .one(let method) where method != String(buffer: written): other = method
    case .unclear where isProtected(head, host, path): throw .badRequest(.methodOverrides)
    case .absent, .one, .unclear:
      let isUndecided = operation == .unread && own?.policy.match.graphql != nil
      return Choice(route: own, method: written, isUndecided: isUndecided)
    }
    let route = route(
      for: head, method: ByteBuffer(string: other), host: host, path: path, operation: operation)
    if operation == .unread, let route = [own, route].first(where: { $0?.policy.match.graphql != nil }) {
      return Choice(route: route, method: written, isUndecided: true)
    }
    // A shadowed route refuses nothing, and observes the written method.
    let ownIsProtected = own?.policy.isEnforced == true
    let overriding = route?.policy.isEnforced == true ? route : nil
    guard ownIsProtected || overriding != nil else { return Choice(route: own, method: written) }
    // A method cannot contain a space, so the combination is unambiguous.
    var both = written
    both.writeString(" " + other)
    let method = ownIsProtected ? written : ByteBuffer(string: other)
    return Choice(
      route: ownIsProtected ? own : overriding, method: method, fingerprintMethod: both,
      isAmbiguous: ownIsProtected && overriding != nil)
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
