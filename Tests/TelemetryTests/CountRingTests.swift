import Testing

@testable import Telemetry

/// The recent history of counts.
struct CountRingTests {
  @Test func `the first totals are no sample, and later ones are their differences`() {
    var ring = CountRing(width: 2)
    ring.add([100, 7])
    #expect(ring.minutes.allSatisfy { $0 == [0, 0] })
    ring.add([103, 7])
    ring.add([103, 9])
    #expect(Array(ring.minutes.suffix(3)) == [[0, 0], [3, 0], [0, 2]])
    #expect(ring.hour.last == [3, 2] && ring.hour.count == 60)
  }

  @Test func `old samples give way, and a minute is twelve short ones`() {
    var ring = CountRing(width: 1)
    for total in 0...(12 * 61) { ring.add([total]) }
    #expect(ring.minutes.allSatisfy { $0 == [1] })
    #expect(ring.hour.allSatisfy { $0 == [12] })
    ring.add([12 * 61 + 5])
    #expect(ring.hour.last == [5] && ring.hour.first == [12])
    #expect(ring.minutes.last == [5])
  }

  @Test func `a total that sinks counts as none, and one that is large does not overflow`() {
    var ring = CountRing(width: 1)
    for total in [10, 3, Int.max, Int.max] { ring.add([total]) }
    #expect(ring.minutes.suffix(3).map { $0[0] } == [0, Int(UInt32.max), 0])
  }
}
