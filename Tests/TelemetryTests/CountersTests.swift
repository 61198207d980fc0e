import Telemetry
import Testing

/// The counters.
struct CountersTests {
  @Test func `lose nothing when many threads count`() async {
    let metrics = Metrics(loops: 1)
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<1000 { metrics.counters.add(.connections) } }
      }
    }
    #expect(await metrics.page().contains("\nsemel_connections_total 8000\n"))
  }

  @Test func `are on the page before anything was counted, each under its own name`() async {
    let metrics = Metrics(loops: 1)
    let names = [
      "connections", "connections_refused", "framing_errors", "hang_ups", "slow_readers", "reloads",
      "reloads_refused",
    ]
    let before = await metrics.page()
    for name in names { #expect(before.contains("\nsemel_\(name)_total 0\n"), "\(name)") }
    for (index, name) in Counters.Name.allCases.enumerated() {
      for _ in 0...index { metrics.counters.add(name) }
    }
    let after = await metrics.page()
    for (index, name) in names.enumerated() {
      #expect(after.contains("\nsemel_\(name)_total \(index + 1)\n"), "\(name)")
    }
  }

  @Test func `belong to one page alone`() async {
    let (one, other) = (Metrics(loops: 1), Metrics(loops: 1))
    one.counters.add(.reloads)
    #expect(await one.page().contains("\nsemel_reloads_total 1\n"))
    #expect(await other.page().contains("\nsemel_reloads_total 0\n"))
  }

  @Test func `give a gauge's present value`() {
    let counters = Metrics(loops: 1).counters
    #expect(counters.change(.inFlight, by: 2) == 2)
    #expect(counters.change(.inFlight, by: -1) == 1)
    #expect(counters[.inFlight] == 1)
  }
}
