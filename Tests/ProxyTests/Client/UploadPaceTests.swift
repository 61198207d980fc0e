import Idempotency
import Testing

@testable import Proxy

struct UploadPaceTests {
  private static let span = Milliseconds.seconds(10)

  @Test func `bytes below the least rate extend nothing`() {
    var pace = UploadPace()
    var left = [pace.left(of: Self.span, after: 0)]
    for wait in [9000, 1000] as [Milliseconds] {
      pace.didWait(wait, of: left.last ?? 0)
      left.append(pace.left(of: Self.span, after: 5119))
    }
    #expect(left == [10_000, 1000, 0])
  }

  @Test func `bytes at the least rate give the whole time anew`() {
    var pace = UploadPace()
    pace.didWait(9999, of: 10_000)
    var left = [pace.left(of: Self.span, after: 5120)]
    pace.didWait(9999, of: 10_000)
    left.append(pace.left(of: Self.span, after: 5120 + 5119))
    left.append(pace.left(of: Self.span, after: 5120 + 5120))
    #expect(left == [10_000, 1, 10_000])
  }

  @Test func `a wait that ended late is not charged`() {
    var pace = UploadPace()
    // A timer's usual delay, the first that proves nothing, and a stall.
    let waits: [(Milliseconds, of: Int64)] = [(9000, 10_000), (1051, 1000), (60_000, 1000), (1050, 1000)]
    var left: [Int64] = []
    for wait in waits {
      pace.didWait(wait.0, of: wait.of)
      left.append(pace.left(of: Self.span, after: 0))
    }
    #expect(left == [1000, 1000, 1000, 0])
  }

  @Test func `however short a time-out is, a byte is asked for, and however long, no overflow comes of it`() {
    #expect(LeastRate.bytes(in: 1) == 1)
    #expect(LeastRate.bytes(in: Milliseconds(.max)) > 1 << 30)
  }
}

struct BodyPaceTests {
  private static let span = Milliseconds.seconds(10)

  @Test func `a pause ends after the time-out, however much came before`() {
    var pace = BodyPace()
    #expect(pace.left(of: Self.span, after: 1 << 20) == 10_000)
    pace.didWait(9999, of: 10_000)
    #expect(pace.left(of: Self.span, after: 1 << 20) == 1)
    #expect(pace.left(of: Self.span, after: 1 << 20 + 1) == 10_000)
  }

  @Test func `a byte now and then does not extend the whole`() {
    var pace = BodyPace()
    var waited: Int64 = 0
    for byte in 1...100 {
      let left = pace.left(of: Self.span, after: byte)
      guard left > 0 else { break }
      pace.didWait(Milliseconds(min(left, 1000)), of: left)
      waited += min(left, 1000)
    }
    // A second for each KiB.
    #expect((10_000...10_000 + 100).contains(waited))
  }

  @Test func `a body at the least rate comes through, and one below it does not`() {
    for (bytesEachSecond, isThrough) in [(1024, true), (900, false)] {
      var pace = BodyPace()
      var isLate = false
      for second in 0..<600 where !isLate {
        let left = pace.left(of: Self.span, after: second * bytesEachSecond)
        isLate = left < 1000
        pace.didWait(1000, of: left)
      }
      #expect(isLate == !isThrough, "\(bytesEachSecond)")
    }
  }

  @Test func `a wait that ended late is not charged`() {
    var pace = BodyPace()
    pace.didWait(60_000, of: 10_000)
    #expect(pace.left(of: Self.span, after: 0) == 10_000)
    pace.didWait(10_050, of: 10_000)
    #expect(pace.left(of: Self.span, after: 0) == 0)
  }
}
