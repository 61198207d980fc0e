import Idempotency
import NIOCore
import Wire

/// The GraphQL operation of a request, where a route goes by it, and the method that a form names.
extension RequestRunner {
  /// The subject of a request that a route takes only if its body selects a mutation, or names another method. Later
  /// routes take any other one.
  ///
  /// The route's limit applies to every request that may meet the route, since a body too large to be read may hold a
  /// mutation.
  @inline(never)
  func undecided(
    _ route: Route, _ target: RequestTarget, _ body: ByteBuffer?
  ) throws(Problem) -> Subject {
    let limit = route.policy.maxRequestBody
    guard let body else { return .incomplete(limit: limit) }
    guard body.readableBytes <= limit else { throw .requestTooLarge(limit: limit) }
    guard worker.bodies.mayReadOnLoop(target.readBytes(of: body)) else { return .operation(body, target) }
    delivery.operation = GraphQLOperation(of: body, head: head, query: target.query)
    delivery.form = .read(MethodParameter.values(inBody: body, head))
    return try identify(body: body)
  }

  /// Reads the operation in a large body beside the loop.
  @inline(never)
  func readOperation(_ body: ByteBuffer, _ target: RequestTarget) async {
    let head = head
    (delivery.operation, delivery.form) = await worker.bodies.read(
      target.readBytes(of: body), of: delivery.connection
    ) {
      (
        GraphQLOperation(of: body, head: head, query: target.query),
        .read(MethodParameter.values(inBody: body, head))
      )
    }
  }
}

extension RequestTarget {
  /// The number of bytes to read for the operation of a request with this body: both may name it.
  fileprivate func readBytes(of body: ByteBuffer) -> Int {
    body.readableBytes + (query?.readableBytes ?? 0)
  }
}
