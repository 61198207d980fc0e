import Dispatch
import Idempotency
import Synchronization
import Testing

@testable import Store

/// The commands that the writer takes at once.
struct RequestQueueTests {
  private final class Command: EmbeddedRequest {
    let name: String
    let largeBytes: Int?
    let turn: Int
    let expiry = Mutex<Bool?>(nil)
    private let ticks = Mutex(0)

    init(_ name: String, large: Int? = nil, turn: Int = 0) {
      (self.name, largeBytes, self.turn) = (name, large, turn)
    }

    func begin() -> Bool { true }
    func run(on table: RecordTable, now: StoreInstant) throws(SQLError) -> RecordEffect { .none }
    func deliver() {}
    func fail(_ error: StoreError) {}
    func countTick() -> Int {
      ticks.withLock {
        $0 += 1
        return $0
      }
    }
    func expire(isServing: Bool) { expiry.withLock { $0 = isServing } }
  }

  private func take(_ queue: RequestQueue) -> [Command] {
    let taken = queue.take(reusing: [], until: .now()) ?? []
    return taken.compactMap { $0 as? Command }
  }

  @Test func `a group has all small commands and few bytes of large ones, each caller in turn`() {
    let queue = RequestQueue()
    for number in 0..<64 { #expect(queue.add(Command("big\(number)", large: 1 << 20, turn: 1))) }
    for number in 0..<64 { #expect(queue.add(Command("small\(number)"))) }
    #expect(queue.add(Command("other", large: 1 << 20, turn: 2)))
    let first = take(queue)
    #expect(first.count { $0.largeBytes == nil } == 64)
    #expect(first.compactMap(\.largeBytes) == [1 << 20])
    queue.finish()
    // Another caller's response does not wait for all of the first one's.
    #expect(take(queue).map(\.name) == ["big1"])
    queue.finish()
    #expect(take(queue).map(\.name) == ["other"])
    queue.finish()
    #expect(queue.add(Command("late")))
    var groups: [[String]] = []
    while case let group = take(queue).map(\.name), !group.isEmpty {
      groups.append(group)
      queue.finish()
    }
    #expect(groups.count == 62 && groups[0].count == 2 && groups[0].contains("late"))
    #expect(groups.dropFirst().allSatisfy { $0.count == 1 })
  }

  @Test func `what was admitted while a group ran is counted until it has run itself`() {
    let queue = RequestQueue()
    let half = (1 << 20) / 2
    #expect(queue.add(Command("a", large: half, turn: 1)))
    #expect(take(queue).map(\.name) == ["a"])
    #expect(queue.add(Command("b", large: half, turn: 2)))
    #expect(queue.add(Command("c", large: half, turn: 3)))
    #expect(queue.add(Command("d", large: half, turn: 4)))
    queue.finish()
    #expect(take(queue).map(\.name) == ["b", "c"])
    queue.finish()
    #expect(take(queue).map(\.name) == ["d"])
  }

  @Test(arguments: [false, true])
  func `a command that waits for its turn expires like any other`(isServing: Bool) {
    let queue = RequestQueue()
    let commands = (0..<3).map { Command("\($0)", large: 1 << 20) }
    for command in commands { #expect(queue.add(command)) }
    for _ in 0..<3 { queue.tick(limit: 3, isServing: isServing) }
    for command in commands { #expect(command.expiry.withLock { $0 } == isServing) }
    #expect(take(queue).isEmpty)
    queue.finish()
    // Nothing of them is left in the way of others.
    #expect(queue.add(Command("next", large: 1 << 20)))
    #expect(take(queue).map(\.name) == ["next"])
  }

  @Test func `what waits for its turn is still run when the queue is closed`() {
    let queue = RequestQueue()
    for number in 0..<3 { #expect(queue.add(Command("\(number)", large: 1 << 20))) }
    queue.close()
    for number in 0..<3 {
      #expect(take(queue).map(\.name) == ["\(number)"])
      queue.finish()
    }
    let rest = queue.take(reusing: [], until: .now())
    #expect(rest?.isEmpty == nil)
  }
}
