import Idempotency
import Telemetry
import Testing

struct RequestJournalTests {
  private func journal(of count: Int) -> RequestJournal {
    let journal = RequestJournal()
    for number in 0..<count {
      var entry = AccessLogEntry()
      entry.status = number
      journal.add(.ended, entry, record: nil)
    }
    return journal
  }

  @Test func `entries are read in parts, the oldest first`() {
    let journal = journal(of: 5)
    let first = journal.part(from: 0, max: 3)
    #expect(first.entries.map(\.status) == [0, 1, 2] && first.missed == 0 && first.next == 3)
    let second = journal.part(from: first.next, max: 3)
    #expect(second.entries.map(\.status) == [3, 4] && second.next == 5)
    let none = journal.part(from: second.next, max: 3)
    #expect(none.entries.isEmpty && none.missed == 0 && none.next == 5)
  }

  @Test func `the oldest entries give way, and are counted as missed`() {
    let capacity = RequestJournal.capacity
    let journal = journal(of: capacity + 10)
    #expect(journal.all.count == capacity && journal.all.first?.status == 10)
    let part = journal.part(from: 4, max: 2)
    #expect(part.entries.map(\.status) == [10, 11] && part.missed == 6 && part.next == 12)
  }

  @Test func `a number beyond the end yields nothing`() {
    let part = journal(of: 2).part(from: 7, max: 3)
    #expect(part.entries.isEmpty && part.missed == 0 && part.next == 7)
  }
}
