import Idempotency
import NIOCore
import Wire

/// The conditions of one route that a request does not meet, found with the route's own matching.
struct RouteFit {
  let misfits: [String]

  /// Matches each condition of the route by a table of one route that has this condition alone.
  init(
    of policy: RoutePolicy, _ head: MessageHead, method: ByteBuffer, host: ByteBuffer, path: ByteBuffer,
    _ operation: GraphQLOperation
  ) {
    let fits = { (policy: RoutePolicy) in
      RouteTable([policy]).route(for: head, method: method, host: host, path: path, operation: operation)
        != nil
    }
    guard !fits(policy) else {
      misfits = []
      return
    }
    var found: [String] = []
    let match = policy.match
    if !fits(Self.route(like: policy, RouteMatch(methods: match.methods), isProtected: policy.isProtected)) {
      let listed = match.methods.isEmpty ? "no safe method" : match.methods.joined(separator: ", ")
      found.append("method: it takes \(listed)")
    }
    if let own = match.path, !fits(Self.route(like: policy, RouteMatch(path: own))) {
      found.append("path: it takes \(own.text)" + (policy.spelling == .lenient ? "" : ", \(policy.spelling)"))
    }
    if let own = match.host, !fits(Self.route(like: policy, RouteMatch(host: own))) {
      found.append("host: it takes \(own)")
    }
    for own in match.headers where !fits(Self.route(like: policy, RouteMatch(headers: [own]))) {
      found.append("headers: it wants \(own.name) with its value")
    }
    if let own = match.graphql, !fits(Self.route(like: policy, RouteMatch(graphql: own))) {
      found.append("graphql: it takes mutations, and the body selects none")
    }
    misfits = found.isEmpty ? ["another of its conditions"] : found
  }

  /// A route with one condition. Without protection and a list of methods, a route takes every method.
  private static func route(
    like policy: RoutePolicy, _ match: RouteMatch, isProtected: Bool = false
  ) -> RoutePolicy {
    var policy = policy
    policy.match = match
    if !isProtected { policy.idempotency = .off }
    return policy
  }
}
