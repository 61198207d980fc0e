import Testing

@testable import Store

/// The turns of large values.
struct TurnQueueTests {
  private func begun(_ queue: inout TurnQueue) -> [TurnQueue.Place] {
    var places: [TurnQueue.Place] = []
    while let place = queue.takeNext() { places.append(place) }
    return places
  }

  @Test func `all that are under way fit into the budget`() {
    var queue = TurnQueue(budget: 100)
    let places = (0..<50).map { queue.enter(caller: $0, bytes: 30) }
    var underWay = begun(&queue)
    #expect(underWay == Array(places.prefix(3)))
    var ended = 0
    while let place = underWay.first {
      queue.end(place)
      ended += 1
      underWay.removeFirst()
      underWay += begun(&queue)
      #expect(underWay.count <= 3)
    }
    #expect(ended == 50 && queue.isEmpty)
  }

  @Test func `a value that is larger than the budget goes alone`() {
    var queue = TurnQueue(budget: 100)
    let small = queue.enter(caller: 1, bytes: 10)
    let large = queue.enter(caller: 2, bytes: 1000)
    let behind = queue.enter(caller: 3, bytes: 10)
    #expect(begun(&queue) == [small])
    queue.end(small)
    #expect(begun(&queue) == [large])
    queue.end(large)
    #expect(begun(&queue) == [behind])
  }

  @Test func `one caller has half of the budget, and delays nobody but itself`() {
    var queue = TurnQueue(budget: 100)
    let own = (0..<100).map { _ in queue.enter(caller: 1, bytes: 20) }
    #expect(begun(&queue) == Array(own.prefix(2)))
    let other = queue.enter(caller: 2, bytes: 20)
    #expect(begun(&queue) == [other])
    queue.end(own[0])
    #expect(begun(&queue) == [own[2]])
  }

  @Test func `callers take turns`() {
    var queue = TurnQueue(budget: 1)
    let first = (0..<3).map { _ in queue.enter(caller: 1, bytes: 1) }
    let second = (0..<3).map { _ in queue.enter(caller: 2, bytes: 1) }
    var order: [TurnQueue.Place] = []
    while let place = queue.takeNext() {
      order.append(place)
      queue.end(place)
    }
    #expect(order == [first[0], second[0], first[1], second[1], first[2], second[2]])
  }

  @Test func `a value that waits no longer leaves no gap`() {
    var queue = TurnQueue(budget: 1)
    let first = queue.enter(caller: 1, bytes: 1)
    let given = queue.enter(caller: 2, bytes: 1)
    let last = queue.enter(caller: 3, bytes: 1)
    #expect(begun(&queue) == [first])
    queue.leave(given)
    queue.end(first)
    #expect(begun(&queue) == [last])
    queue.end(last)
    #expect(queue.isEmpty)
  }
}
