import Platform
import Testing

struct EntropyTests {
  @Test func `what was fetched ahead is the same in a clone`() {
    var entropy = Entropy()
    _ = entropy.next()
    // As the memory of a machine that is cloned.
    var clone = entropy
    #expect(entropy.next() == clone.next())
  }

  @Test func `what is fresh is the same in a clone for a millisecond at most`() {
    var entropy = Entropy(count: 4)
    _ = entropy.fresh(now: 0)
    var clone = entropy
    #expect(entropy.fresh(now: 1_000_000) == clone.fresh(now: 1_000_000))
    // Each has fetched four, of which two were used.
    #expect(entropy.fresh(now: 1_000_000) != clone.fresh(now: 1_000_000))
    var (one, other) = (Entropy(), Entropy())
    _ = one.fresh(now: 0)
    other = one
    #expect(one.fresh(now: 1_000_001) != other.fresh(now: 1_000_001))
  }

  @Test func `nothing is returned twice`() {
    var entropy = Entropy(count: 4)
    var seen: Set<UInt64> = []
    for now in 0..<100 {
      let (one, other) = entropy.fresh(now: Int64(now) * 300_000)
      #expect(
        seen.insert(one).inserted && seen.insert(other).inserted && seen.insert(entropy.next()).inserted)
    }
  }
}
