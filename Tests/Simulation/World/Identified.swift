import Idempotency
import NIOCore
import Proxy
import Settings
import Wire

/// A request as Semel identifies it: what an operator's command needs of it.
enum Identified {
  private static let table = RouteTable(
    Node.settings(Rules.configuration(of: 0, variant: 0, isHTTP2: false, store: Rules.store)).routes)

  /// The calls of a request: one, or those of a batch's items.
  static func calls(of text: String) -> [KeyedCall] {
    do { return try read(text) } catch {
      preconditionFailure("Identified: a request that Semel would refuse: \(error)")
    }
  }

  private static func read(_ text: String) throws -> [KeyedCall] {
    var body = ByteBuffer(string: text)
    var decoder = RequestDecoder(limits: LimitSettings().head)
    guard case .head(let request)? = try decoder.next(&body) else { return [] }
    let head = request.head
    let (target, host) = try head.addressed()
    let choice = try table.choice(
      for: head, host: host?.name ?? ByteBuffer(), target: target, body: body)
    guard let route = choice.route else { return [] }
    let peer = CallerPeer(address: nil)
    let accepted = AcceptedHead(
      head: head, route: route, target: target, host: host, method: choice.method,
      caller: try .init(by: route.policy, head: head, peer: peer, query: target.query),
      finding: try route.policy.key.keyBeforeBody(head: head, query: target.query), identityKey: nil)
    guard let policy = route.policy.batch else { return try accepted.read(body).map { [$0] } ?? [] }
    return try accepted.readBatch(body, policy).calls
  }
}
