import Idempotency
import NIOCore
import Platform
import Wire

/// One keyed request, identified: the arguments of its claim, the request for the backend, and the machine that decides
/// on it.
///
/// A class, so that it is not copied into the frame of every step that a request takes. It may be made on any thread;
/// the machine is used on the event loop of its delivery alone.
public final class KeyedCall: @unchecked Sendable {
  private let accepted: AcceptedHead
  let body: ByteBuffer
  public let id: RecordID
  public let caller: Caller
  public let key: IdempotencyKey
  /// The fingerprint by the route's recipe.
  public let fingerprint: Fingerprint
  /// The machine of this request's claim, from the store's first reply to the end of its record.
  var lifecycle: ClaimLifecycle
  /// The request's count in the retry budget; `nil` before its first attempt, or if its route makes no retries.
  var retried: RetriedCall?

  init(
    _ accepted: AcceptedHead, body: ByteBuffer, fingerprint: Fingerprint, id: RecordID, caller: Caller,
    key: IdempotencyKey
  ) {
    self.accepted = accepted
    self.body = body
    self.id = id
    self.caller = caller
    self.key = key
    self.fingerprint = fingerprint
    lifecycle = ClaimLifecycle(route: accepted.route)
  }

  var route: Route { accepted.route }
  var target: RequestTarget { accepted.target }
  /// The method that enters the record's id and the fingerprint.
  var method: ByteBuffer { accepted.method }

  /// Whether the protected method is DELETE.
  var isDelete: Bool { method.readableBytesView.elementsEqual("DELETE".utf8) }

  /// The fingerprint by the recipe of a record that another configuration has made.
  func fingerprint(by recipe: Recipe, head: MessageHead) -> Fingerprint {
    .make(
      recipe: recipe, head: head, method: method, path: target.path, query: target.query,
      body: body)
  }

  /// The number of bytes from which a fingerprint by a recipe is made.
  func readBytes(by recipe: Recipe, head: MessageHead) -> Int {
    body.readableBytes + recipe.contentBytes(of: body, head) + (target.query?.readableBytes ?? 0)
  }

  /// Notes the key, and returns whether another caller used it a short time ago. Call it once, for a first run.
  func isKeySeenUnderOtherCaller(in sightings: KeySightings, at now: BootInstant) -> Bool {
    // Hashed under a secret of this process.
    var hasher = Hasher()
    hasher.combine(route.policy.upstream.name)
    switch route.policy.endpoint {
    case .path: target.path.withUnsafeReadableBytes { hasher.combine(bytes: $0) }
    case .route: hasher.combine(route.policy.name)
    }
    hasher.combine(key.bytes.count)
    key.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    return sightings.note(hasher.finalize(), caller: caller.hashValue, now: now)
  }

  /// Notes the run of a new key, and returns the number of new keys of its caller under which its payload has come a
  /// short time ago, with this one.
  func keysOfPayload(in misuse: MisuseSketch) -> Int {
    let caller = callerHash
    var hasher = Hasher()
    hasher.combine(caller)
    hasher.combine(fingerprint.digest)
    return misuse.noteRun(payload: hasher.finalize(), caller: caller, now: .now)
  }

  /// A hash of caller and route, under a secret of this process.
  var callerHash: Int {
    var hasher = Hasher()
    hasher.combine(caller)
    hasher.combine(route.number)
    return hasher.finalize()
  }

  /// - Parameters:
  ///   - isSealed: Whether the store seals responses with the clients' keys.
  ///   - attribution: The origin that the record names; `nil` for a claim that is never sent.
  ///   - reader: The delivery that gets a recorded response; `nil` if there is none.
  func claimRequest(
    owner: OwnerToken, isSealed: Bool, attribution: Attribution? = nil, reader: (any ResponseReader)? = nil
  ) -> ClaimRequest {
    let takeOver: ClaimRequest.TakeOver =
      switch route.policy.onUnknown {
      // The backend is queried before such a record is taken over.
      case .hold, .reconcile: .never
      case .retry: .afterSettle(route.policy.upstream.settle)
      }
    return ClaimRequest(
      id: id, owner: owner, fingerprint: fingerprint, lease: route.policy.lease,
      takeOver: takeOver,
      unknownRetention: route.policy.unknownRetention, remember: route.policy.remember,
      unusedRelease: route.policy.uncountedRelease, key: isSealed ? key : nil, attribution: attribution,
      reader: reader)
  }

  /// The claim of the record that is kept about a request of a shadowed route, which no other route uses. An unknown
  /// outcome protects nothing here: with its tombstone the record lives for `remember` and not for a month.
  func shadowClaimRequest(owner: OwnerToken, isSealed: Bool, attribution: Attribution) -> ClaimRequest {
    let own = claimRequest(owner: owner, isSealed: isSealed, attribution: attribution)
    let half = Milliseconds(own.remember.count / 2)
    return ClaimRequest(
      id: id.shadowed, owner: owner, fingerprint: fingerprint, lease: own.lease, takeOver: own.takeOver,
      unknownRetention: min(own.unknownRetention, half), remember: half, unusedRelease: own.unusedRelease,
      key: own.key, attribution: attribution)
  }

  /// The body as it is sent. A request that came without a body is sent without one.
  func upstreamBody(of delivery: Delivery) -> RequestBody {
    delivery.request.framing == .none ? .none : .whole(body)
  }
}

/// A batch, identified: a keyed call for each record of its items.
///
/// A class, so that it is not copied into the frame of every step that a request takes.
public final class BatchCall: Sendable {
  public let route: Route
  public let policy: BatchPolicy
  let target: RequestTarget
  let request: BatchRequest
  /// The calls, one for each record, in the order of the first items that have it.
  public let calls: [KeyedCall]
  /// The first item of each call.
  public let items: [Int]
  /// The call of each item; `nil` for an item that has an earlier item's key and another payload.
  public let places: [Int?]

  init(
    route: Route, policy: BatchPolicy, target: RequestTarget, request: BatchRequest, calls: [KeyedCall],
    items: [Int], places: [Int?]
  ) {
    self.route = route
    self.policy = policy
    self.target = target
    self.request = request
    self.calls = calls
    self.items = items
    self.places = places
    invariant(!calls.isEmpty, "a batch has no record")
    invariant(calls.count == items.count, "a batch has other records than items that have one first")
    invariant(places.count == request.items.count, "an item of a batch has no place")
  }
}

extension AcceptedHead {
  /// The batch with the fingerprints of its items.
  public func readBatch(_ body: ByteBuffer, _ policy: BatchPolicy) throws(Problem) -> BatchCall {
    let caller = try caller(in: body)
    let request = try BatchRequest(body, head: head, policy: policy, keys: route.policy.key)
    let prints = request.fingerprints(
      of: Array(request.items.indices), by: route.policy.recipe, head: head, method: method,
      target: target)
    var calls: [KeyedCall] = []
    var items: [Int] = []
    var places: [Int?] = []
    var known: [RecordID: Int] = [:]
    for (index, item) in request.items.enumerated() {
      let id = recordID(of: item.key, caller)
      if let place = known[id] {
        places.append(calls[place].fingerprint == prints[index] ? place : nil)
        continue
      }
      known[id] = calls.count
      places.append(calls.count)
      items.append(index)
      calls.append(
        KeyedCall(
          self, body: item.text, fingerprint: prints[index], id: id, caller: caller, key: item.key))
    }
    return BatchCall(
      route: route, policy: policy, target: target, request: request, calls: calls, items: items,
      places: places)
  }
}
