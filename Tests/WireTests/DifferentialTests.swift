import Testing
import WireOracle

struct DifferentialTests {
  /// Streams by four seeds, about a second in a debug build; a fuzzer takes it further with
  /// `WireFuzz.check`.
  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `accepted input means the same to the oracle`(_ seed: UInt64) {
    var generator = RequestGenerator(seed: seed)
    var agreed = 0
    for _ in 0..<1500 {
      let bytes = generator.next()
      let verdict = WireFuzz.check(bytes)
      if case .broken(let fault) = verdict {
        Issue.record("\(fault) in \(String(decoding: bytes, as: UTF8.self).debugDescription)")
      }
      if verdict == .agreed { agreed += 1 }
    }
    #expect(agreed > 150, "the streams are too damaged to tell anything")
  }
}
