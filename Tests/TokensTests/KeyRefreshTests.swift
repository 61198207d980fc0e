import Testing

@testable import Tokens

/// A machine of a test, in an object: an expectation cannot change a value.
private final class Timetable {
  private var refresh = KeyRefresh()

  var failures: Int { refresh.failures }
  func begins(at now: Int64, hasChanged: Bool) -> Bool { refresh.begins(at: now, hasChanged: hasChanged) }
  func keyUnknown(at now: Int64) -> KeyRefresh.UnknownKeyAction { refresh.keyUnknown(at: now) }
  func ended(isSuccess: Bool, at now: Int64) { refresh.ended(isSuccess: isSuccess, at: now) }
}

struct KeyRefreshTests {
  @Test func `a set is fetched at once, and then once in its period`() {
    let refresh = Timetable()
    #expect(refresh.begins(at: 0, hasChanged: false))
    #expect(!refresh.begins(at: 1, hasChanged: true))
    refresh.ended(isSuccess: true, at: 10)
    #expect(!refresh.begins(at: 9 + KeyRefresh.period, hasChanged: false))
    #expect(refresh.begins(at: 10 + KeyRefresh.period, hasChanged: false))
  }

  @Test func `a changed source is read at once`() {
    let refresh = Timetable()
    _ = refresh.begins(at: 0, hasChanged: false)
    refresh.ended(isSuccess: true, at: 0)
    #expect(refresh.begins(at: 1, hasChanged: true))
  }

  @Test func `a failed fetch is repeated after a pause that doubles up to a minute`() {
    let refresh = Timetable()
    var now: Int64 = 0
    for pause in [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000] as [Int64] {
      #expect(refresh.begins(at: now, hasChanged: false))
      refresh.ended(isSuccess: false, at: now)
      #expect(!refresh.begins(at: now + pause - 1, hasChanged: false))
      now += pause
    }
    #expect(refresh.begins(at: now, hasChanged: false))
    refresh.ended(isSuccess: true, at: now)
    #expect(refresh.failures == 0)
    #expect(!refresh.begins(at: now + 60_000, hasChanged: false))
  }

  @Test func `unknown keys cause one fetch in a minute, and share one under way`() {
    let refresh = Timetable()
    _ = refresh.begins(at: 0, hasChanged: false)
    #expect(refresh.keyUnknown(at: 1) == .awaitFetch)
    refresh.ended(isSuccess: true, at: 2)
    #expect(refresh.keyUnknown(at: 3) == .fetch)
    #expect(refresh.keyUnknown(at: 4) == .awaitFetch)
    refresh.ended(isSuccess: false, at: 5)
    #expect(refresh.keyUnknown(at: 3 + KeyRefresh.unknownKeyPause - 1) == .giveUp)
    #expect(refresh.keyUnknown(at: 3 + KeyRefresh.unknownKeyPause) == .fetch)
  }
}
