import Idempotency
import Proxy
import Testing

/// The first runs that are taken for a retry under another caller.
struct KeySightingsTests {
  private static func at(seconds: Int64) -> BootInstant { BootInstant(nanoseconds: seconds << 30) }

  @Test func `a key under another caller is noticed soon after, and not later`() {
    let sightings = KeySightings()
    let key = 0x1234_5678_9ABC_DEF0
    #expect(!sightings.note(key, caller: 1, now: Self.at(seconds: 70_000)))
    #expect(!sightings.note(key, caller: 1, now: Self.at(seconds: 70_001)))
    #expect(sightings.note(key, caller: 2, now: Self.at(seconds: 70_100)))
    #expect(sightings.note(key, caller: 1, now: Self.at(seconds: 70_200)))
    #expect(!sightings.note(key, caller: 2, now: Self.at(seconds: 71_000)))
  }

  @Test func `different keys differ, also in the same slot`() {
    let sightings = KeySightings()
    #expect(!sightings.note(0x1_0000_0001, caller: 1, now: Self.at(seconds: 1)))
    #expect(!sightings.note(0x2_0000_0001, caller: 2, now: Self.at(seconds: 1)))
    #expect(!sightings.note(-1, caller: 2, now: Self.at(seconds: 1)))
    #expect(!sightings.note(0x1_0000_0001, caller: 3, now: Self.at(seconds: 2)))
  }
}
