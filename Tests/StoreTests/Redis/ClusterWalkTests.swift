import TestSupport
import Testing
import Wire

@testable import Store

/// The walk over a cluster's masters, without a network.
struct ClusterWalkTests {
  private let a = ServerAddress.tcp(host: "a", port: 1)
  private let b = ServerAddress.tcp(host: "b", port: 2)
  private let c = ServerAddress.tcp(host: "c", port: 3)

  /// A map with so many slots of one master after the other.
  private func layout(_ runs: (ServerAddress, Int)...) -> SlotMap {
    var map = SlotMap()
    var slot = 0
    for (master, count) in runs {
      for _ in 0..<count {
        map.assign(slot, to: master)
        slot += 1
      }
    }
    return map
  }

  /// The masters that a walk reads from a place on, in one step each.
  private func masters(from walk: ClusterWalk?, in map: SlotMap) -> [ServerAddress] {
    var found: [ServerAddress] = []
    var step = ClusterWalk.step(walk, in: map)
    while let (place, master) = step, found.count < 100 {
      found.append(master)
      step = place.after(cursor: "0", in: map).flatMap { ClusterWalk.step($0, in: map) }
    }
    return found
  }

  /// The place in the middle of the walk over the master that is the second one of a walk.
  private func middleOfSecond(_ map: SlotMap) throws -> ClusterWalk {
    let first = try #require(ClusterWalk.step(nil, in: map)).place
    let second = try #require(first.after(cursor: "0", in: map))
    return try #require(second.after(cursor: "17", in: map))
  }

  @Test func `a walk visits every master once, however their slots are spread`() throws {
    let map = layout((b, 50), (a, 20), (b, 5), (a, 5), (c, 1), (b, 30))
    #expect(masters(from: nil, in: map) == [b, a, c])
    #expect(masters(from: nil, in: SlotMap()).isEmpty)
    let first = try #require(ClusterWalk.step(nil, in: map))
    #expect(first.master == b && first.place.cursor == "0")
    let middle = try #require(first.place.after(cursor: "17", in: map))
    let inside = try #require(ClusterWalk.step(middle, in: map))
    #expect(inside.master == b && inside.place.cursor == "17")
  }

  @Test func `a place is read from its text`() throws {
    let map = layout((b, 50), (a, 50))
    let middle = try middleOfSecond(map)
    #expect(middle.text == "50/a:1/17/\(map.digest)")
    #expect(ClusterWalk(middle.text) == middle)
    let moved = try #require(ClusterWalk.step(middle, in: layout((b, 50), (c, 50)))).place
    #expect(moved.text == "50-99/c:3/0")
    #expect(ClusterWalk(moved.text) == moved)
    // As an earlier version wrote it.
    #expect(ClusterWalk("50/a:1/17")?.text == "50-50/a:1/17")
    for text in [
      "", "0", "0/a:1", "0//1", "x/a:1/1", "16384/a:1/1", "0/a:1/", "0/a:1/-1", "0/a:1/1/2", "5-4/a:1/1",
      "0-16384/a:1/1", "-1/a:1/1", "0-/a:1/1", "0-1-2/a:1/1", "0-1/a:1/1/\(map.digest)",
      "0/a:1/1/000000000000000x", "0/a:1/1/\(map.digest)/",
    ] {
      #expect(ClusterWalk(text) == nil, "\(text)")
    }
  }

  @Test func `a walk begins again at the master that has taken over`() throws {
    let middle = try middleOfSecond(layout((b, 50), (a, 50)))
    let other = layout((b, 50), (c, 50))
    let again = try #require(ClusterWalk.step(middle, in: other))
    #expect(again.master == c && again.place.cursor == "0")
    #expect(masters(from: middle, in: other) == [c])
  }

  @Test func `a master that has got the slots of the walk is read again`() throws {
    // All of b's slots have gone to a, whose first slot the walk has passed.
    let middle = try middleOfSecond(layout((a, 50), (b, 50)))
    #expect(masters(from: middle, in: layout((a, 100))) == [a])
    // And some of them.
    #expect(masters(from: middle, in: layout((a, 70), (b, 30))) == [a, b])
    #expect(masters(from: middle, in: layout((a, 50), (b, 20), (a, 30))) == [b, a])
  }

  @Test func `a change during the last step over a master is seen`() throws {
    let before = layout((a, 50), (b, 50))
    let middle = try middleOfSecond(before)
    let end = try #require(ClusterWalk.step(middle, in: before)).place
    #expect(end.after(cursor: "0", in: before) == nil)
    let after = layout((a, 50), (b, 20), (a, 30))
    #expect(masters(from: end.after(cursor: "0", in: after), in: after) == [b, a])
  }

  /// A cluster of which a walk reads some keys at each step, one key in each slot. Only what a real walk guarantees is
  /// found: the keys that a master had from the beginning of the walk over it to its end.
  private struct Walked {
    private(set) var found: Set<Int> = []
    private(set) var stepCount = 0
    private var walk: ClusterWalk?
    private var hasBegun = false
    private var reading: (master: ServerAddress, keys: Set<Int>)?

    var isOver: Bool { hasBegun && walk == nil }

    mutating func moved(_ slot: Int) { reading?.keys.remove(slot) }

    /// Makes a step. It happens between two readings of the map, before and after it.
    mutating func step(_ map: () -> SlotMap, slots: Range<Int>, change: () -> Int?) throws {
      hasBegun = true
      stepCount += 1
      let before = map()
      guard let (place, master) = ClusterWalk.step(walk, in: before) else {
        walk = nil
        return
      }
      if place.cursor == "0" { reading = (master, Set(slots.filter { before[$0] == master })) }
      if let slot = change() { moved(slot) }
      let next = (UInt64(place.cursor) ?? 0) + 1
      let cursor = next == 3 ? "0" : "\(next)"
      if cursor == "0" { found.formUnion(reading?.keys ?? []) }
      // As over the interface.
      walk = try place.after(cursor: cursor, in: map()).map { try #require(ClusterWalk($0.text)) }
    }
  }

  @Test(arguments: 0..<10 as Range<UInt64>)
  func `a walk misses no slot while slots move, and ends`(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let nodes = [a, b, c]
    let slots = 0..<30
    var map = SlotMap()
    for slot in slots { map.assign(slot, to: nodes[slot / 10]) }
    // Each slot moves once at most: one that leaves and comes back within one walk over a master is not seen.
    var movable = slots.shuffled(using: &generator)
    var walked = Walked()
    while !walked.isOver {
      try #require(walked.stepCount < 1000)
      try walked.step({ map }, slots: slots) {
        guard Int.random(in: 0..<3, using: &generator) == 0, let slot = movable.popLast() else { return nil }
        let others = nodes.filter { $0 != map[slot] }
        map.assign(slot, to: others[Int.random(in: 0..<2, using: &generator)])
        return slot
      }
    }
    #expect(walked.found == Set(slots))
  }
}
