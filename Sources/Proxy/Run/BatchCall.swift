import Idempotency
import NIOCore
import Wire

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
