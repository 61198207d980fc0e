import Telemetry
import Testing

@Suite struct `The counters` {
  @Test func `stand on the page with help, type and value`() {
    let counters = Counters()
    counters.add(.executed, 3)
    counters.change(.inFlight, by: 2)
    let page = counters.page()
    #expect(page.contains("# TYPE semel_executed_total counter\nsemel_executed_total 3\n"))
    #expect(page.contains("# TYPE semel_in_flight gauge\nsemel_in_flight 2\n"))
    for name in Counters.Name.allCases { #expect(page.contains("# HELP semel_\(name.page.name) ")) }
  }

  @Test func `have names of their own`() {
    let names = Counters.Name.allCases.map(\.page.name) + Counters.Gauge.allCases.map(\.page.name)
    #expect(Set(names).count == names.count)
  }

  @Test func `lose nothing when many threads count`() async {
    let counters = Counters()
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<1000 { counters.add(.requests) } }
      }
    }
    #expect(counters[.requests] == 8000)
  }
}
