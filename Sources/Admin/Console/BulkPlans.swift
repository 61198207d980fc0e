import Idempotency
import Platform
import Synchronization

/// The bulk acts that wait for their confirmation. A plan names each record with the attempt that was counted.
final class BulkPlans: Sendable {
  struct Plan: Sendable {
    let route: String
    let records: [(id: RecordID, attempt: Int)]
    let madeAt = ContinuousClock.now
  }

  static let maxRecords = 1000
  private static let lifetime = Duration.seconds(600)
  private static let maxPlans = 16

  private let plans = Mutex<[(name: String, plan: Plan)]>([])

  func keep(_ plan: Plan) -> String {
    let name = ConsoleSessions.randomName()
    plans.withLock { plans in
      if plans.count == Self.maxPlans { plans.removeFirst() }
      plans.append((name, plan))
    }
    return name
  }

  /// The plan with a name; `nil` if it is too old, or was taken.
  func plan(named name: String) -> Plan? {
    plans.withLock { plans in
      plans.first { $0.name == name && ContinuousClock.now - $0.plan.madeAt < Self.lifetime }?.plan
    }
  }

  /// Takes a plan out, so that it is carried out once.
  func take(_ name: String) -> Plan? {
    guard let plan = plan(named: name) else { return nil }
    return plans.withLock { plans in
      guard let place = plans.firstIndex(where: { $0.name == name }) else { return nil }
      plans.remove(at: place)
      return plan
    }
  }
}
