import Idempotency
import Platform

/// The quotas of one caller on this node. They do not count where all clients are one caller.
extension RequestRunner {
  /// Counts a request in its caller's quota until it ends; refuses if the quota is used up.
  func enterQuota(of call: KeyedCall) throws(Problem) {
    guard let max = configuration.limits.callerInFlight, call.route.policy.caller?.isShared != true else {
      return
    }
    let caller = call.caller.hashValue
    guard environment.quotas.enter(caller, max: max) else {
      throw .quotaExceeded(.inFlight)
    }
    delivery.quotaCaller = caller
  }

  /// Counts the key of a claim that has made a new record. Gives the claim back, so that the record is gone, if the
  /// quota is used up: a key that has a record is never refused for it.
  func takeNewKey(for call: KeyedCall, orGiveBack claim: Claim) throws(Problem) {
    guard let rate = configuration.limits.callerNewKeys, claim.ordinal == 1,
      call.route.policy.caller?.isShared != true,
      let wait = environment.quotas.refusal(ofNewKeyBy: call.caller.hashValue, at: rate, now: .now)
    else { return }
    worker.giveBack(granted: claim)
    throw .quotaExceeded(.newKeys, retryAfter: wait)
  }
}
