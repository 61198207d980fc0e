import TestSupport

/// The ways in which a store goes away and comes back with all its records.
enum StoreOutage: String, CaseIterable, Sendable {
  case redisStopped, redisStalled, fileLocked

  var store: StoreKind { self == .fileLocked ? .embedded : .redis }

  /// Begins it; the function that ends it.
  func begin(_ rig: Rig) async throws -> @Sendable () async throws -> Void {
    switch self {
    case .redisStopped:
      rig.redis?.stop()
      return { try await rig.redis?.start() }
    case .redisStalled:
      rig.redis?.freeze()
      return { rig.redis?.thaw() }
    case .fileLocked:
      let holder = try await rig.lockStore()
      return { try await holder.kill() }
    }
  }
}
