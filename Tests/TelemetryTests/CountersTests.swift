import Telemetry
import Testing

@Suite struct `The counters` {
  @Test func `lose nothing when many threads count`() async {
    let counters = Counters()
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<1000 { counters.add(.connections) } }
      }
    }
    #expect(counters[.connections] == 8000)
  }

  @Test func `say what a gauge has become`() {
    let counters = Counters()
    #expect(counters.change(.inFlight, by: 2) == 2)
    #expect(counters.change(.inFlight, by: -1) == 1)
    #expect(counters[.inFlight] == 1)
  }
}
