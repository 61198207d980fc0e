import Synchronization
import Testing

@testable import Store

/// The turns of large responses that are decoded.
struct ExpansionTurnsTests {
  @Test func `what is decoded at once fits into the budget, and a larger response goes alone`() {
    let turns = ExpansionTurns()
    let begun = Mutex<[TurnQueue.Place]>([])
    for caller in 0..<20 {
      turns.enter(caller: caller, bytes: 3 << 20) { place in begun.withLock { $0.append(place) } }
    }
    turns.enter(caller: 20, bytes: 100 << 20) { place in begun.withLock { $0.append(place) } }
    for ended in 0..<21 {
      let places = begun.withLock { $0 }
      // Two of 3 MiB, or the last one alone.
      #expect(places.count == min(ended + 2, 20) + (ended == 20 ? 1 : 0))
      turns.end(places[ended])
    }
    #expect(begun.withLock { $0.count } == 21)
  }
}
