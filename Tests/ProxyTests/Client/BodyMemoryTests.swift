import Idempotency
import Telemetry
import Testing

@testable import Proxy

/// The memory that only captured responses take.
struct CapturedMemoryTests {
  private static let limits: MemoryLimits = {
    var limits = LimitSettings()
    limits.bodyMemory = 64 << 20
    return MemoryLimits(limits)
  }()
  private static let share = 16 << 20

  private static func reserve(_ captured: HolderBudget, within limits: MemoryLimits = limits) -> Bool {
    captured.add(MemoryLimits.reservation, upTo: limits.reserved)
  }

  private static func grow(
    _ captured: HolderBudget, _ count: Int, beside own: Int = 0, caller: Int, of connection: AnyObject? = nil,
    within limits: MemoryLimits = limits
  ) -> Bool {
    guard let connection else {
      return captured.take(count, of: .caller(caller), beside: own, within: limits.captured)
    }
    return captured.take(
      count, of: .connection(ObjectIdentifier(connection)), .caller(caller), beside: own,
      within: limits.captured)
  }

  @Test func `by default all requests in flight find room for a small response`() {
    let captured = HolderBudget()
    let limits = MemoryLimits(LimitSettings())
    #expect((0..<4096).allSatisfy { _ in Self.reserve(captured, within: limits) })
    // And one that is larger, for a client that holds no more.
    #expect(Self.grow(captured, 1 << 20, caller: 1, within: limits))
  }

  @Test func `nothing is claimed past three quarters, so that what was claimed may grow`() {
    let captured = HolderBudget()
    var count = 0
    while Self.reserve(captured) { count += 1 }
    #expect(count * MemoryLimits.reservation == Self.share / 4 * 3)
    #expect(Self.grow(captured, Self.share / 4, caller: 1))
    #expect(!Self.grow(captured, 1, beside: Self.share / 4, caller: 1))
    for _ in 0..<count { captured.subtract(MemoryLimits.reservation) }
    captured.give(Self.share / 4, of: .caller(1))
    #expect(captured.taken == 0)
  }

  @Test func `one caller or connection leaves half of the memory to the others`() {
    let captured = HolderBudget()
    let connection = HolderBudget()
    var taken = 0
    while Self.grow(captured, 1 << 20, caller: 1, of: connection) { taken += 1 << 20 }
    #expect(taken == Self.share / 2)
    #expect(Self.grow(captured, 1 << 20, caller: 2) && Self.grow(captured, 1 << 20, caller: 2))
    #expect(!Self.grow(captured, 1 << 20, caller: 2))
    #expect(!Self.grow(captured, 1 << 20, caller: 3, of: connection))
    #expect(Self.grow(captured, 6 << 20, caller: 3))
    #expect(!Self.grow(captured, 1, caller: 4))
    captured.give(6 << 20, of: .caller(3))
    #expect(Self.grow(captured, 1, caller: 4))
  }

  @Test func `outcomes that wait for the store take half of it`() {
    let counters = Metrics(loops: 1).counters
    let memory = BodyMemory(counters: counters)
    #expect(memory.takeOutcome(Self.share / 2, within: Self.limits))
    #expect(!memory.takeOutcome(1, within: Self.limits))
    #expect(memory.captured.taken == Self.share / 2 && counters[.bodyBytes] == Self.share / 2)
    #expect(Self.reserve(memory.captured))
    memory.captured.subtract(MemoryLimits.reservation)
    memory.giveOutcome(Self.share / 2)
    #expect(memory.captured.taken == 0 && counters[.bodyBytes] == 0)
    // And no more than there is.
    #expect(Self.grow(memory.captured, Self.share / 4 * 3, caller: 1))
    #expect(!memory.takeOutcome(Self.share / 2, within: Self.limits))
    #expect(memory.takeOutcome(Self.share / 4, within: Self.limits))
    memory.giveOutcome(Self.share / 4)
    memory.captured.give(Self.share / 4 * 3, of: .caller(1))
    #expect(memory.captured.taken == 0 && counters[.bodyBytes] == 0)
  }

  @Test func `one response may be as large as the share`() {
    let captured = HolderBudget()
    #expect(Self.grow(captured, Self.share / 2, caller: 1))
    #expect(Self.grow(captured, Self.share / 2, beside: Self.share / 2, caller: 1))
    #expect(captured.taken == Self.share)
  }
}

/// The clients' parts of what waits for them.
struct WaitingMemoryTests {
  private static let limits: MemoryLimits = {
    var limits = LimitSettings()
    limits.bodyMemory = 64 << 20
    limits.maxInFlight = 80
    return MemoryLimits(limits)
  }()

  private let memory = BodyMemory(counters: Metrics(loops: 1).counters)

  private func take(_ bytes: Int, of client: String) -> Bool {
    memory.waiting.take(bytes, of: .address(client), within: Self.limits.waiting)
  }

  private func takeRequest(of client: String) -> Bool {
    memory.takeRequest(1, of: .address(client), within: Self.limits)
  }

  @Test func `one client has a quarter of the share, and few clients no more than half of it`() {
    #expect(take(3 << 20, of: "a") && take(1 << 20, of: "a"))
    #expect(!take(1, of: "a") && take(4 << 20, of: "b"))
    #expect(take(1, of: "c") && !take(1 << 20, of: "c"))
    memory.waiting.give(1 << 20, of: .address("a"))
    #expect(!take(1 << 20, of: "a") && take((1 << 20) - 1, of: "a"))
  }

  @Test func `clients that hold little find room beside those that take all they may`() {
    for client in ["a", "b"] { #expect(take(4 << 20, of: client)) }
    let little = 64 << 10
    #expect(take(little / 2, of: "c") && take(little / 2, of: "c"))
    #expect(!take(1, of: "c"))
    for client in 1..<128 { #expect(take(little, of: "\(client)")) }
    #expect(!take(1, of: "e") && memory.waiting.taken == 16 << 20)
    memory.waiting.give(1, of: .address("c"))
    #expect(take(1, of: "e"))
  }

  @Test func `requests that wait for bodies leave half of those in flight to the others`() {
    #expect((0..<20).allSatisfy { _ in takeRequest(of: "a") })
    #expect(!takeRequest(of: "a") && take(1, of: "a"))
    for client in 0..<20 { #expect(takeRequest(of: "\(client)")) }
    #expect(!takeRequest(of: "1"))
    #expect(!takeRequest(of: "e") && memory.waitingRequests.taken == 40)
    memory.giveRequest(1, of: .address("a"))
    #expect(takeRequest(of: "e") && memory.waitingRequests.taken == 40)
  }

  @Test func `a request whose head finds no room takes no place of another`() {
    #expect(take(4 << 20, of: "a") && !takeRequest(of: "a"))
    #expect(memory.waitingRequests.taken == 0 && memory.waiting.taken == 4 << 20)
  }

  @Test func `a head that is larger than a client's share may be its only one`() {
    #expect(take(5 << 20, of: "a") && !take(1, of: "a"))
    #expect(!take(17 << 20, of: "b"))
  }

  @Test func `the shares of connections that are no single client's are apart`() {
    for connection in [HolderBudget(), HolderBudget()] {
      let client = MemoryHolder.connection(ObjectIdentifier(connection))
      #expect(memory.waiting.take(4 << 20, of: client, within: Self.limits.waiting))
      #expect(!memory.waiting.take(1, of: client, within: Self.limits.waiting))
    }
  }
}
