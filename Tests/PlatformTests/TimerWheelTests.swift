import Platform
import TestSupport
import Testing

/// The wheel against a plain list of timers, and its corners.
struct TimerWheelTests {
  @Test func `a timer fires at its tick and not before`() {
    var wheel = TimerWheel<Int>(now: 100, buckets: 8)
    _ = wheel.start(at: 105, 1)
    #expect(wheel.fired(by: 104) == [])
    #expect(wheel.count == 1)
    #expect(wheel.fired(by: 105) == [1])
    #expect(wheel.count == 0)
    #expect(wheel.fired(by: 200) == [])
  }

  @Test func `a timer for a tick that is over fires at the next`() {
    var wheel = TimerWheel<Int>(now: 100, buckets: 8)
    _ = wheel.start(at: 7, 1)
    _ = wheel.start(at: 100, 2)
    #expect(wheel.fired(by: 100) == [])
    #expect(Set(wheel.fired(by: 101)) == [1, 2])
  }

  @Test func `timers that share a bucket fire each at its own tick`() {
    var wheel = TimerWheel<Int>(now: 0, buckets: 8)
    for turn in 1...5 { _ = wheel.start(at: Int64(turn * 8 + 3), turn) }
    for turn in 1...5 {
      #expect(wheel.fired(by: Int64(turn * 8 + 2)) == [])
      #expect(wheel.fired(by: Int64(turn * 8 + 3)) == [turn])
    }
  }

  @Test func `after a long sleep every timer that is due fires once, and the others stay`() {
    var wheel = TimerWheel<Int>(now: 0, buckets: 8)
    for tick in 1...50 { _ = wheel.start(at: Int64(tick), tick) }
    let due = wheel.fired(by: 40)
    #expect(due.sorted() == Array(1...40))
    #expect(wheel.count == 10)
    #expect(wheel.fired(by: 1000).sorted() == Array(41...50))
  }

  @Test func `the next tick is that of the nearest timer, or a round ahead`() {
    var wheel = TimerWheel<Int>(now: 100, buckets: 8)
    #expect(wheel.next == nil)
    let far = wheel.start(at: 1000, 1)
    // The bucket of a later round.
    #expect(wheel.next == 104)
    let near = wheel.start(at: 102, 2)
    #expect(wheel.next == 102)
    wheel.stop(near)
    wheel.stop(far)
    _ = wheel.start(at: 115, 3)
    #expect(wheel.next == 107)
    #expect(wheel.fired(by: 107) == [])
    #expect(wheel.next == 114)
    #expect(wheel.fired(by: 114) == [] && wheel.next == 115)
  }

  @Test func `a timer that is due can be stopped until it is taken`() {
    var wheel = TimerWheel<Int>(now: 0, buckets: 8)
    let tokens = (1...3).map { wheel.start(at: 8, $0) }
    let due = wheel.advance(to: 8)
    #expect(Set(due) == Set(tokens) && wheel.count == 3)
    #expect(wheel.take(tokens[1]) == 2)
    wheel.stop(tokens[0])
    #expect(wheel.take(tokens[0]) == nil && wheel.take(tokens[1]) == nil)
    // Its place is another timer's by now.
    let next = wheel.start(at: 9, 4)
    #expect(wheel.take(tokens[0]) == nil)
    #expect(wheel.take(tokens[2]) == 3)
    #expect(wheel.advance(to: 9) == [next])
  }

  @Test func `a stopped timer does not fire`() {
    var wheel = TimerWheel<Int>(now: 0, buckets: 8)
    let tokens = (1...5).map { wheel.start(at: 8, $0) }
    // The last, the first and one between, as they are linked.
    wheel.stop(tokens[4])
    wheel.stop(tokens[0])
    wheel.stop(tokens[2])
    wheel.stop(tokens[2])
    #expect(wheel.count == 2)
    #expect(wheel.fired(by: 8).sorted() == [2, 4])
  }

  @Test func `a token of a timer that is over does not stop the next in its place`() {
    var wheel = TimerWheel<Int>(now: 0, buckets: 8)
    let first = wheel.start(at: 1, 1)
    #expect(wheel.fired(by: 1) == [1])
    _ = wheel.start(at: 2, 2)
    wheel.stop(first)
    #expect(wheel.fired(by: 2) == [2])
  }

  @Test func `the wheel's time never goes back`() {
    var wheel = TimerWheel<Int>(now: 10, buckets: 8)
    _ = wheel.start(at: 12, 1)
    #expect(wheel.fired(by: 5) == [])
    #expect(wheel.now == 10)
    #expect(wheel.fired(by: 12) == [1])
  }

  @Test(arguments: [1, 2, 16, 1024])
  func `the wheel behaves like a list of timers`(buckets: Int) {
    var generator = SeededGenerator(seed: 0x5EED)
    var wheel = TimerWheel<Int>(now: 0, buckets: buckets)
    var model: [Int: (tick: Int64, token: TimerWheel<Int>.Token)] = [:]
    var now: Int64 = 0
    for name in 0..<5000 {
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<5:
        let tick = now + Int64.random(in: -2...3000, using: &generator)
        model[name] = (max(tick, now + 1), wheel.start(at: tick, name))
      case 5..<7:
        guard let stopped = model.keys.min(by: { $0 ^ name < $1 ^ name }), let timer = model[stopped] else {
          continue
        }
        wheel.stop(timer.token)
        model[stopped] = nil
      default:
        now += Int64.random(in: 0...40, using: &generator)
        let due = model.filter { $0.value.tick <= now }.keys
        #expect(Set(wheel.fired(by: now)) == Set(due))
        for name in due { model[name] = nil }
      }
      #expect(wheel.count == model.count)
    }
  }
}

extension TimerWheel {
  /// Advances the time, and returns the payloads of the timers that are due.
  fileprivate mutating func fired(by tick: Int64) -> [Payload] { advance(to: tick).compactMap { take($0) } }
}
