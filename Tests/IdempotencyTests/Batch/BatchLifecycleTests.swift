import Testing

@testable import Idempotency

struct BatchLifecycleTests {
  private func lifecycle(_ ids: UInt8...) -> BatchLifecycle {
    BatchLifecycle(ids.map { RecordID(.sample($0)) })
  }

  @Test func `claims are taken in the order of ids, and sent in the request's`() {
    var batch = lifecycle(3, 1, 2)
    #expect(batch.next == .claim([1, 2, 0]))
    for index in [1, 2, 0] { batch.granted(index) }
    #expect(batch.next == .send([0, 1, 2]))
    for index in 0...2 { batch.ended(index) }
    #expect(batch.next == .respond)
  }

  @Test func `nothing is waited for while a claim is held`() {
    var batch = lifecycle(1, 2, 3)
    batch.granted(0)
    batch.held(1, leaseLeft: 500)
    batch.held(2, leaseLeft: 300)
    #expect(batch.next == .send([0]))
    batch.ended(0)
    #expect(batch.next == .wait([1, 2], leaseLeft: 300))
    batch.changed()
    #expect(batch.next == .claim([1, 2]))
    batch.granted(2)
    batch.held(1, leaseLeft: 100)
    #expect(batch.next == .send([2]))
    batch.ended(2)
    batch.ended(1)
    #expect(batch.next == .respond)
  }

  @Test func `an item that was superseded is claimed again at once`() {
    var batch = lifecycle(1, 2)
    batch.granted(0)
    batch.held(1, leaseLeft: 500)
    batch.superseded(0)
    #expect(batch.next == .claim([0]))
    batch.held(0, leaseLeft: 100)
    #expect(batch.next == .wait([0, 1], leaseLeft: 100))
  }
}
