import Idempotency
import NIOCore
import Wire

/// A keyed request of which all but its body has been accepted.
///
/// Reading the body takes time that grows with it, and needs nothing of the event loop.
///
/// A class, so that the keyed request shares it instead of copying its parts.
public final class AcceptedHead: Sendable {
  /// The result of a search for the caller before the body has arrived.
  public enum CallerFinding: Sendable {
    case known(Caller)
    /// A part of the caller of this peer is in the body.
    case inBody(of: CallerPeer)
  }

  let head: MessageHead
  let route: Route
  let target: RequestTarget
  let host: RequestHost?
  /// The method that enters the record's id and the fingerprint.
  let method: ByteBuffer
  let caller: CallerFinding
  /// The key, where the head holds it.
  let finding: KeyFinding
  let identityKey: IdentityKey?
  /// The digests of members; `nil` if the route does not explain mismatches.
  let digests: LogDigests?

  public init(
    head: MessageHead, route: Route, target: RequestTarget, host: RequestHost?, method: ByteBuffer,
    caller: CallerFinding, finding: KeyFinding, identityKey: IdentityKey?,
    digests: LogDigests? = nil
  ) {
    self.head = head
    self.route = route
    self.target = target
    self.host = host
    self.method = method
    self.caller = caller
    self.finding = finding
    self.identityKey = identityKey
    self.digests = digests
  }

  /// The number of passes over the body that a batch takes in addition: each item is found, parsed and hashed by
  /// itself.
  private static let batchSearches = 3

  /// The number of bytes to read: the query, and the body once for each pass, a compressed one with its content.
  func readBytes(of body: ByteBuffer) -> Int {
    body.readableBytes * (route.bodySearches + (route.policy.batch == nil ? 0 : Self.batchSearches))
      + route.policy.recipe.contentBytes(of: body, head) * (digests == nil ? 1 : 2)
      + (target.query?.readableBytes ?? 0)
  }

  /// The number of bytes that a reading on the loop counts for. A batch may consist of items of twelve bytes, each of
  /// which costs 3 µs.
  func loopBytes(of body: ByteBuffer) -> Int {
    readBytes(of: body) * (route.policy.batch == nil ? 1 : Self.batchSearches + 1)
  }

  /// The keyed request with its fingerprint; `nil` if it has no key.
  public func read(_ body: ByteBuffer) throws(Problem) -> KeyedCall? {
    let caller = try caller(in: body)
    guard let key = try key(in: body) else {
      try refuseUnreadable(body)
      return nil
    }
    let id = recordID(of: key, caller)
    var fingerprint = fingerprint(of: body, by: route.policy.recipe)
    if let digests { explain(&fingerprint, of: body, id, by: digests) }
    return KeyedCall(self, body: body, fingerprint: fingerprint, id: id, caller: caller, key: key)
  }

  /// The id of the record of a key.
  func recordID(of key: IdempotencyKey, _ caller: Caller) -> RecordID {
    route.recordID(
      caller: caller, host: host, method: method, path: target.path, key: key, under: identityKey)
  }

  /// Adds what lets the record explain how a later payload differs.
  @inline(never)
  private func explain(
    _ fingerprint: inout Fingerprint, of body: ByteBuffer, _ id: RecordID, by digests: LogDigests
  ) {
    let members = MemberDigests(of: body, head: head, recipe: route.policy.recipe, id: id, by: digests)
    if let members { fingerprint.recipe = fingerprint.recipe.explaining(members) }
  }

  func caller(in body: ByteBuffer) throws(Problem) -> Caller {
    switch (caller, route.policy.caller) {
    case (.known(let caller), _): return caller
    case (.inBody(let peer), let policy?):
      return try policy.caller(head: head, peer: peer, query: target.query, body: body)
    case (.inBody, nil): invariantBroken("a protected route without caller")
    }
  }

  /// The key that was found in the head, or the one that the body yields.
  ///
  /// A payload that is the key is read by the recipe of keys.
  private func key(in body: ByteBuffer) throws(Problem) -> IdempotencyKey? {
    if case .found(let key) = finding { return key }
    return try route.policy.key.key(head: head, query: target.query, body: body) {
      fingerprint(of: body, by: route.policy.recipe.ofKeys)
    }
  }

  /// Refuses a body that may contain a key and cannot be read: to the backend the request may have one.
  @inline(never)
  private func refuseUnreadable(_ body: ByteBuffer) throws(Problem) {
    let policy = route.policy.key
    guard policy.mayHide(in: body, head) else { return }
    throw route.policy.idempotency == .optional
      ? .keyInvalid(.unreadableBody, policy: policy) : .keyMissing(policy, isBodyUnreadable: true)
  }

  private func fingerprint(of body: ByteBuffer, by recipe: Recipe) -> Fingerprint {
    .make(
      recipe: recipe, head: head, method: method, path: target.path, query: target.query,
      body: body)
  }
}

/// A request whose body is too large to be read on the event loop.
///
/// A class, so that it is not copied into the frame of every step that a request takes.
final class LargeRequest: Sendable {
  let accepted: AcceptedHead
  let body: ByteBuffer

  init(_ accepted: AcceptedHead, body: ByteBuffer) {
    self.accepted = accepted
    self.body = body
  }

  var bytes: Int { accepted.readBytes(of: body) }

  /// The batch, on a route that takes batches.
  func readBatch(_ policy: BatchPolicy) -> Result<BatchCall, Problem> {
    do throws(Problem) { return .success(try accepted.readBatch(body, policy)) } catch {
      return .failure(error)
    }
  }

  func read() -> Result<KeyedCall?, Problem> {
    do throws(Problem) { return .success(try accepted.read(body)) } catch { return .failure(error) }
  }
}

extension AcceptedHead.CallerFinding {
  /// Looks for the caller of a protected route's request before the body has arrived.
  public init(
    by policy: RoutePolicy, head: MessageHead, peer: CallerPeer, query: ByteBuffer?
  ) throws(Problem) {
    guard let policy = policy.caller else {
      invariantBroken("a protected route without caller")
    }
    let caller = try policy.callerBeforeBody(head: head, peer: peer, query: query)
    self = caller.map { .known($0) } ?? .inBody(of: peer)
  }
}
