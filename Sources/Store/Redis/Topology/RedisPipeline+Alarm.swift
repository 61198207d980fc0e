import Idempotency
import Platform

/// The server's changes that concern live claims.
extension RedisPipeline {
  /// The time for which new claims wait after the server's clock was set, until the owners of all processes have
  /// renewed their leases: some round trips.
  private static let clockGrace: Milliseconds = 200

  /// The time after a promotion in which a connection to the server has the leases renewed.
  private static let promotionTime: Milliseconds = 10_000

  /// Reads the server's history.
  func readHistory() {
    query(RedisHandshake.Step.info.command) { [self] reply in
      if let history = reply.flatMap(ReplicationHistory.init) { met(history) }
    }
  }

  /// Takes the server's history.
  func met(_ history: ReplicationHistory) {
    let now = BootInstant.now
    mayBeReplica = history.isOfReplica
    guard let promotion = subscriber.alarm.met(history, of: name, at: now), alarmedHistory != history.id
    else { return }
    alarmedHistory = history.id
    // An outcome that was cached, also over this loop's connection to the former server, may not be in the new one.
    subscriber.dropCachedOutcomes()
    guard now - promotion.at < Self.promotionTime else { return }
    if let demand = settings.demand, demand.replicas > 0 {
      conditions.pause(until: promotion.at + settings.failoverGrace)
    }
    renewLeases()
  }

  /// Takes a step of the server's clock.
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
