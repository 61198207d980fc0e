import Idempotency
import Testing

@testable import Proxy

/// The habits of clients with their keys.
struct MisuseSketchTests {
  private func instant(_ seconds: Int64) -> BootInstant {
    BootInstant(nanoseconds: 1 << 40 + seconds * 1_000_000_000)
  }

  @Test func `one payload under new keys within minutes is counted, and another one by itself`() {
    let sketch = MisuseSketch()
    let found = (0..<7).map { sketch.noteRun(payload: 1 << 40, caller: 1, now: instant($0 * 10)) }
    #expect(found == [1, 2, 3, 4, 5, 6, 7] && MisuseSketch.maxKeys == 5)
    #expect(sketch.noteRun(payload: 1 << 41 + 1, caller: 1, now: instant(70)) == 1)
    // The time begins anew after some five minutes.
    #expect(sketch.noteRun(payload: 1 << 40, caller: 1, now: instant(400)) == 1)
  }

  @Test func `three mismatches in a row are suspicious, and a run ends the row`() {
    let sketch = MisuseSketch()
    #expect(
      [1, 2, 3].map { sketch.noteMismatch(caller: 9 << 40, now: instant($0)) } == [false, false, true])
    #expect(sketch.noteRun(payload: 5 << 40, caller: 9 << 40, now: instant(4)) == 1)
    #expect([5, 6].map { sketch.noteMismatch(caller: 9 << 40, now: instant($0)) } == [false, false])
    #expect(!sketch.noteMismatch(caller: 8 << 40 + 3, now: instant(7)))
  }

  @Test(arguments: [
    ("6f1c2f0e-8f0a-4f7e-9c4c-7a1a6d9d3b52", false), ("01J8ZQ4T7X9M3K5V2B6N8P0R1S", false),
    ("k3Jd9Qz1LmX7", false),
    ("1", true), ("order-1234", true), ("1764475200", true), ("00000000-0000-0000-0000-000000000000", true),
    ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true),
  ])
  func `a key that is short or repeats itself is weak`(text: String, isWeak: Bool) throws {
    var policy = KeyPolicy()
    policy.placeholders = .accept
    let key = try policy.key(texts: [text])
    #expect(key.isWeak == isWeak)
  }
}
