import Idempotency
import Platform

/// The quotas of one caller on this node. They do not count where all clients are one caller.
extension RequestRunner {
  /// Counts a request in its caller's quota until it ends, once; refuses if the quota is used up.
  func enterQuota(of call: KeyedCall) throws(Problem) { try enterQuota(of: call.caller, by: call.route) }

  /// The same for an inquiry, or as soon as the head names the caller, where the body is still to come.
  func enterQuota(of caller: Caller, by route: Route) throws(Problem) {
    guard delivery.quotaCaller == nil, let max = configuration.limits.callerInFlight,
      route.policy.caller?.isShared != true
    else { return }
    let caller = caller.hashValue
    guard environment.quotas.enter(caller, max: max) else {
      throw .quotaExceeded(.inFlight)
    }
    delivery.quotaCaller = caller
  }

  /// Counts the items of a batch, each of which is a claim, a lease and memory; the batch itself was counted as one.
  func enterQuota(ofItems count: Int) throws(Problem) {
    guard delivery.memory.takeBesides(count * Self.itemBytes) else { throw .overloaded(.busy) }
    guard let max = configuration.limits.callerInFlight, let caller = delivery.quotaCaller else { return }
    guard environment.quotas.enter(items: count - 1, of: caller, max: max) else {
      throw .quotaExceeded(.inFlight)
    }
    delivery.quotaItems = count - 1
  }

  /// The memory of one item's call, claim and lease, about.
  private static var itemBytes: Int { 2 << 10 }

  /// Counts the key of a claim that has made a new record. If the quota is used up, the claim is to be undone, so that
  /// the record is gone: a key that has a record is never refused for it.
  func takeNewKey(of claim: Claim, for call: KeyedCall) throws(Problem) {
    guard let rate = configuration.limits.callerNewKeys, claim.ordinal == 1,
      call.route.policy.caller?.isShared != true,
      let wait = environment.quotas.refusal(ofNewKeyBy: call.caller.hashValue, at: rate, now: .now)
    else { return }
    throw .quotaExceeded(.newKeys, retryAfter: wait)
  }
}
