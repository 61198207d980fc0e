import Idempotency
import Platform
import Synchronization

/// The open records by what they have in common, as found by one walk through the store.
struct OpenGroups: Sendable {
  struct Group: Sendable {
    let cause: String
    /// The route's name; empty if no record and no configuration names it.
    let route: String
    let upstream: String
    var count = 0
    var oldest: Milliseconds = 0
    var sample: RecordID?
  }

  /// The maximum number of groups; further records are counted in the last one.
  private static let maxGroups = 100
  private static let maxListed = 10

  private var index: [String: Int] = [:]
  /// In the order of their first record.
  private(set) var groups: [Group] = []
  private(set) var inFlight = 0
  private(set) var unreadable = 0
  /// The oldest unknown records, the oldest first.
  private(set) var oldest: [RecordView] = []
  var takenAt = ContinuousClock.now

  var unknown: Int { groups.reduce(0) { $0 + $1.count } }

  mutating func add(unreadable count: Int) { unreadable += count }

  mutating func add(_ record: RecordView, upstream: String) {
    guard case .unknown(let age, _) = record.standing else {
      inFlight += 1
      return
    }
    let (cause, route) = (record.cause?.rawValue ?? "not known", record.attribution?.route ?? "")
    let name = "\(cause)\n\(route)\n\(upstream)"
    let place = index[name] ?? min(groups.count, Self.maxGroups - 1)
    if index[name] == nil, place == groups.count {
      groups.append(Group(cause: cause, route: route, upstream: upstream))
      index[name] = place
    }
    groups[place].count += 1
    if age >= groups[place].oldest {
      groups[place].oldest = age
      groups[place].sample = record.id
    }
    list(record)
  }

  private mutating func list(_ record: RecordView) {
    guard oldest.count < Self.maxListed || record.age > (oldest.last?.age ?? 0) else { return }
    let place = oldest.firstIndex { $0.age < record.age } ?? oldest.count
    oldest.insert(record, at: place)
    if oldest.count > Self.maxListed { oldest.removeLast() }
  }
}

/// Walks the open records of the store while a page shows them, so that no page waits for a walk that takes minutes.
final class OpenSurvey: Sendable {
  private struct State {
    var latest: OpenGroups?
    /// The number of walks that have ended, with or without a result.
    var walks = 0
    var fault: String?
  }

  /// The shortest time between two walks; a walk that takes long has four times its duration before the next.
  private static let pause = Duration.seconds(1)
  /// The time for which a page waits for a walk.
  private static let patience = Duration.milliseconds(70)

  private let recordAdmin: RecordAdmin
  private let state = Mutex(State())
  private let calls: AsyncStream<Void>
  private let call: AsyncStream<Void>.Continuation

  init(recordAdmin: RecordAdmin) {
    self.recordAdmin = recordAdmin
    (calls, call) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Walks after each call, until the task is cancelled.
  func run() async {
    for await _ in calls {
      let startedAt = ContinuousClock.now
      do throws(AdminError) {
        let groups = try await recordAdmin.openGroups()
        state.withLock { state in
          state.latest = groups
          state.fault = nil
        }
      } catch {
        state.withLock { $0.fault = error.detail }
      }
      state.withLock { $0.walks += 1 }
      let span = ContinuousClock.now - startedAt
      if span > Self.patience { try? await Task.sleep(for: max(Self.pause, span * 4)) }
    }
  }

  /// The latest groups, of a walk that begins now where that is quick; `nil` groups if none has ended yet.
  func look() async -> (groups: OpenGroups?, fault: String?) {
    let walks = state.withLock { $0.walks }
    call.yield()
    let end = ContinuousClock.now + Self.patience
    while state.withLock({ $0.walks }) == walks, ContinuousClock.now < end {
      do { try await Task.sleep(for: .milliseconds(3)) } catch { break }
    }
    return state.withLock { ($0.latest, $0.fault) }
  }
}

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
