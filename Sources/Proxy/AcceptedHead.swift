import Idempotency
import NIOCore
import Wire

/// A keyed request of which all but its body has been accepted.
///
/// Reading the body takes time that grows with it, and needs nothing of the event loop.
struct AcceptedHead: Sendable {
  /// All that a claim needs, once the body has been read.
  struct Reading: Sendable {
    let call: KeyedCall
    let key: IdempotencyKey
    let fingerprint: Fingerprint
  }

  let head: MessageHead
  let route: Route
  let target: RequestTarget
  let host: ByteBuffer
  /// The method that enters the record's id.
  let method: ByteBuffer
  /// The method that enters the fingerprint.
  let fingerprintMethod: ByteBuffer
  let caller: Caller
  /// The key, where the head holds it.
  let finding: KeyFinding
  let identityKey: IdentityKey?

  /// The bytes that are read besides what a head may always hold.
  func readBytes(of body: ByteBuffer) -> Int { body.readableBytes + (target.query?.readableBytes ?? 0) }

  /// The key and the fingerprint; `nil` where there is no key.
  func read(_ body: ByteBuffer) throws(Problem) -> Reading? {
    guard let key = try key(in: body) else { return nil }
    let call = KeyedCall(
      route: route, target: target, method: fingerprintMethod, body: body,
      id: .make(
        caller: caller, upstream: route.policy.upstream.name, host: host,
        method: method,
        place: route.policy.endpoint == .path ? .path(target.path) : .route(route.policy.name), key: key,
        under: identityKey),
      caller: caller, key: key)
    return Reading(call: call, key: key, fingerprint: call.fingerprint(by: route.policy.recipe, head: head))
  }

  /// The key that was found in the head, or the one that stands in the body.
  private func key(in body: ByteBuffer) throws(Problem) -> IdempotencyKey? {
    if case .found(let key) = finding { return key }
    return try route.policy.key.key(head: head, query: target.query, body: body)
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

  func read() -> Result<AcceptedHead.Reading?, Problem> {
    do throws(Problem) { return .success(try accepted.read(body)) } catch { return .failure(error) }
  }
}
