import Idempotency
import Platform

extension RedisPipeline {
  /// The time for which new claims wait after the server's clock was set, for all owners to renew their leases.
  private static let clockGrace: Milliseconds = 200

  /// The time after a promotion in which a connection to the server has the leases renewed.
  private static let promotionTime: Milliseconds = 10_000

  func readHistory() {
    query(RedisHandshake.Step.info.command) { [self] reply in
      if let history = reply.flatMap(ReplicationHistory.init) { met(history) }
    }
  }

  func met(_ history: ReplicationHistory) {
    let now = BootInstant.now
    mayBeReplica = history.isOfReplica
    guard let promotion = subscriber.alarm.met(history, of: name, at: now), alarmedHistory != history.id
    else { return }
    alarmedHistory = history.id
    // A cached outcome may not be in the new server.
    subscriber.dropCachedOutcomes()
    guard now - promotion.at < Self.promotionTime else { return }
    if let demand = settings.demand, demand.replicas > 0 {
      conditions.pause(until: promotion.at + settings.failoverGrace)
    }
    renewLeases()
  }

  func clockStepped(by step: Milliseconds) {
    let isLoss = subscriber.alarm.clockStepped(by: step, to: clock.difference, of: name)
    if isLoss { subscriber.inspector.expired() }
    subscriber.dropCachedOutcomes()
    conditions.pause(until: BootInstant.now + Self.clockGrace)
    renewLeases()
  }

  private func renewLeases() {
    subscriber.alarm.renewLeases()
    guard subscriber.alarm.mayAnnounce(at: BootInstant.now) else { return }
    query(["PUBLISH", keys.invalidations, RedisKeys.renewal]) { _ in }
  }
}
