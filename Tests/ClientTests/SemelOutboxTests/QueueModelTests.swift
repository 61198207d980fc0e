import ClientTestSupport
import GRDB
import HTTPTypes
import SemelClient
@testable import SemelOutbox
import Testing

/// Random steps of two processes on one queue, beside a model of it that is a list.
struct QueueModelTests {
  /// An intent of the model.
  private struct Item {
    let intent: QueuedIntent
    let group: String?
    let rule: GroupRule
    var isLeased = false
    var isOpen = true
  }

  private struct Model {
    var items: [Item] = []
    var held: Set<String> = []

    /// The intents that may be leased: of each group the first open one.
    var ready: Set<Int64> {
      var (groups, ready) = (Set<String>(), Set<Int64>())
      for item in items where item.isOpen {
        if let group = item.group, !groups.insert(group).inserted || held.contains(group) { continue }
        if !item.isLeased { ready.insert(item.intent.id) }
      }
      return ready
    }

    mutating func end(_ id: Int64, isFailure: Bool) {
      guard let index = items.firstIndex(where: { $0.intent.id == id }) else { return }
      items[index].isOpen = false
      items[index].isLeased = false
      guard isFailure, let group = items[index].group else { return }
      switch items[index].rule {
      case .proceed: break
      case .hold: held.insert(group)
      case .fail: for other in items.indices where items[other].group == group { items[other].isOpen = false }
      }
    }
  }

  @Test(arguments: 0..<40)
  func `two processes lease exactly what the model allows, in every order of steps`(seed: UInt64) throws {
    var generator = Numbers(seed)
    let queue = try Queue()
    var (model, leases) = (Model(), [LeasedIntent]())
    for _ in 0..<150 {
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<4:
        let group = ["a", "b", nil].randomElement(using: &generator) ?? nil
        let rule = GroupRule.allCases.randomElement(using: &generator) ?? .proceed
        model.items.append(
          Item(intent: try queue.enqueue(group: group, rule: rule), group: group, rule: rule))
      case 4..<6:
        let ready = model.ready
        let leased = try queue.lease(as: Bool.random(using: &generator) ? "app" : "extension")
        #expect(Set(leased.map(\.name.id)) == ready)
        for index in model.items.indices where ready.contains(model.items[index].intent.id) {
          model.items[index].isLeased = true
        }
        leases += leased
      case 6..<9:
        guard !leases.isEmpty else { continue }
        let leased = leases.remove(at: Int.random(in: 0..<leases.count, using: &generator))
        let isFailure = Bool.random(using: &generator)
        let outcome =
          isFailure ? QueuedOutcome.rejected(Response(422)) : .completed(Response(201), wasReplayed: false)
        #expect(try queue.end(leased, outcome))
        model.end(leased.name.id, isFailure: isFailure)
      default:
        guard let group = model.held.popFirst() else { continue }
        try queue.database.write { db in try queue.store().resume(group: group, in: db) }
      }
    }
    #expect(queue.endCount == model.items.count { !$0.isOpen })
    #expect(Set(queue.ended.keys) == Set(model.items.filter { !$0.isOpen }.map(\.intent.id)))
  }
}

/// A generator that makes the same numbers for the same seed (SplitMix64).
private struct Numbers: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
