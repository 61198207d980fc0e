import Idempotency
import Proxy
import Testing

/// The table of the records that the process has met.
struct KnownRecordsTests {
  private static let now = BootInstant(nanoseconds: 1_000_000_000)

  private static func id(_ number: Int) -> RecordID {
    let bytes = (0..<32).map { UInt8(truncatingIfNeeded: $0 < 8 ? number >> ($0 * 8) : 0) }
    guard let digest = Digest256(bytes) else { preconditionFailure("32 bytes make a digest") }
    return RecordID(digest)
  }

  private static func put(_ state: KnownRecord.State, _ number: Int, in records: KnownRecords) {
    records.change(id(number), now: now) { record, _ in record = KnownRecord(state, fingerprint: nil) }
  }

  private static func state(
    _ number: Int, in records: KnownRecords, now: BootInstant = now
  ) -> KnownRecord.State? {
    records.change(id(number), now: now) { record, _ in record?.state }
  }

  @Test func `the oldest records are dropped first, and none that is running`() {
    let records = KnownRecords(capacity: 100)
    Self.put(.owned, -1, in: records)
    Self.put(.unprotected(releasedUntil: nil), -2, in: records)
    for number in 0..<1000 { Self.put(.taken(until: Self.now + 1000), number, in: records) }
    #expect(records.count <= 102)
    #expect((960..<1000).allSatisfy { Self.state($0, in: records) != nil })
    #expect((0..<850).allSatisfy { Self.state($0, in: records) == nil })
    #expect(Self.state(-1, in: records) == .owned)
    #expect(Self.state(-2, in: records) == .unprotected(releasedUntil: nil))
  }

  @Test func `all running records stay, even beyond the capacity`() {
    let records = KnownRecords(capacity: 10)
    for number in 0..<1000 { Self.put(.owned, number, in: records) }
    #expect(records.count == 1000)
    for number in 0..<1000 { Self.put(.taken(until: Self.now + 1000), number, in: records) }
    for number in 1000..<5000 { Self.put(.taken(until: Self.now + 1000), number, in: records) }
    #expect(records.count <= 20)
  }

  @Test func `an entry ends with its record, or when it is removed`() {
    let records = KnownRecords()
    Self.put(.taken(until: Self.now + 1000), 1, in: records)
    Self.put(.owned, 2, in: records)
    #expect(Self.state(1, in: records, now: Self.now + 999) != nil)
    #expect(Self.state(1, in: records, now: Self.now + 1000) == nil)
    #expect(Self.state(2, in: records, now: Self.now + .seconds(1_000_000)) == .owned)
    records.remove(Self.id(2))
    #expect(Self.state(2, in: records) == nil)
    #expect(records.count == 0)
  }
}
