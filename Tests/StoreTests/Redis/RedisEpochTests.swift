import Testing

@testable import Store

/// The epochs of servers, by which the loss of records is found and reported once.
struct RedisEpochTests {
  @Test func `another epoch is reported once as a loss of records`() throws {
    let epoch = RedisEpoch()
    for _ in 0..<2 { #expect(epoch.seen("a", under: "k") == RedisEpoch.Finding()) }
    #expect(epoch.loss == nil)
    #expect(epoch.firstAttempt == 1)
    let finding = epoch.seen("b", under: "k")
    #expect(finding.loss?.contains("without the records") == true)
    let successor = try #require(finding.replacement?.successor)
    #expect(successor.hasPrefix("1."))
    // Not written yet.
    #expect(epoch.seen("b", under: "k") == RedisEpoch.Finding(replacement: finding.replacement))
    #expect(epoch.firstAttempt == 1_000_000_001)
    epoch.replaced("b", by: successor, under: "k")
    // A read of before the replacement, and one of after it.
    for read in ["b", successor] {
      #expect(epoch.seen(read, under: "k") == RedisEpoch.Finding())
    }
    #expect(epoch.loss != nil)
    #expect(epoch.lossCount == 1)
    #expect(RedisEpoch.made() != RedisEpoch.made())
  }

  @Test func `of several processes one begins the next generation`() {
    let (one, other) = (RedisEpoch(), RedisEpoch())
    for epoch in [one, other] { _ = epoch.seen("4.a", under: "k") }
    let first = one.seen("b", under: "k").replacement?.successor ?? ""
    #expect(first.hasPrefix("5."))
    // The other one comes too late with its own.
    #expect(other.seen("b", under: "k").replacement?.successor.hasPrefix("5.") == true)
    other.replaced("b", by: first, under: "k")
    #expect(other.seen(first, under: "k") == RedisEpoch.Finding())
    // A third one sees the replacement alone.
    let third = RedisEpoch()
    _ = third.seen("4.a", under: "k")
    let found = third.seen(first, under: "k")
    #expect(found.loss != nil && found.replacement == nil)
    for epoch in [one, other, third] { #expect(epoch.firstAttempt == 5_000_000_001) }
  }

  @Test func `each master of a cluster has an epoch, and the highest generation counts`() {
    let epoch = RedisEpoch()
    for key in ["k", "l"] { _ = epoch.seen("a", under: key) }
    #expect(epoch.seen("b", under: "l").loss != nil)
    #expect(epoch.seen("a", under: "k") == RedisEpoch.Finding())
    #expect(epoch.firstAttempt == 1_000_000_001)
  }

  @Test func `records that have expired are a loss, and of several processes one begins the next generation`()
  {
    let (one, other) = (RedisEpoch(), RedisEpoch())
    for epoch in [one, other] { _ = epoch.seen("a", under: "k") }
    let finding = one.expired()
    #expect(finding.loss?.contains("clock was set") == true && one.loss == finding.loss && one.lossCount == 1)
    let replacement = finding.replacement
    #expect(replacement?.epoch == "a" && replacement?.successor.hasPrefix("1.") == true)
    // Not written yet.
    #expect(one.seen("a", under: "k") == RedisEpoch.Finding(replacement: replacement))
    // The other one meets the step itself, and then what the first one has written.
    _ = other.expired()
    #expect(other.seen(replacement?.successor ?? "", under: "k") == RedisEpoch.Finding())
    #expect(other.seen("a", under: "k") == RedisEpoch.Finding())
    for epoch in [one, other] {
      #expect(epoch.firstAttempt == 1_000_000_001)
      #expect(epoch.lossCount == 1)
    }
    // Nothing is known of any epoch.
    let blind = RedisEpoch()
    #expect(blind.expired().replacement == nil)
    #expect(blind.firstAttempt == 1_000_000_001)
  }
}
