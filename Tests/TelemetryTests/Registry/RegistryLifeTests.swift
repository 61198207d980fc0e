import CoreMetrics
import Telemetry
import Testing

/// The registry of swift-metrics, over the life of its metrics.
struct RegistryLifeTests {
  @Test func `is bounded, and counts refused series`() async {
    let registry = MetricRegistry(maxSeries: 2)
    for path in ["/a", "/b", "/c", "/d", "/a"] {
      Counter(label: "requests", dimensions: [("path", path)], factory: registry).increment()
    }
    Timer(label: "time", factory: registry).recordSeconds(1)
    let page = await RegistryPage(registry)
    #expect(page.samples == [#"requests_total{path="/a"} 2"#, #"requests_total{path="/b"} 1"#])
    #expect(page.dropped == "3")
    page.expectIsValid()
  }

  @Test func `holds a thousand series besides Semel's own`() async {
    let registry = MetricRegistry()
    let own = Counters(registry: registry)
    for number in 0..<1001 {
      Counter(label: "x", dimensions: [("number", "\(number)")], factory: registry).increment()
    }
    own.add(.hangUps)
    let page = await RegistryPage(registry)
    #expect(page.samples.count == 1000)
    #expect(page.dropped == "1")
    #expect(page.text.contains("\nsemel_hang_ups_total 1\n"))
  }

  @Test func `refuses a series whose name and labels fill a page`() async {
    let registry = MetricRegistry()
    for length in [900, 1100] {
      let path = String(repeating: "a", count: length)
      Counter(label: "x", dimensions: [("path", path)], factory: registry).increment()
    }
    let page = await RegistryPage(registry)
    #expect(page.samples.map(\.utf8.count) == [900 + #"x_total{path=""} 1"#.utf8.count])
    #expect(page.dropped == "1")
  }

  @Test func `keeps a series on the page until its last holder has destroyed it`() async {
    let registry = MetricRegistry()
    let (one, other) = (Counter(label: "x", factory: registry), Counter(label: "x", factory: registry))
    one.increment()
    one.destroy()
    other.increment()
    #expect(await RegistryPage(registry).samples == ["x_total 2"])
    other.destroy()
    let after = await RegistryPage(registry)
    #expect(after.samples.isEmpty)
    #expect(!after.text.contains("x_total"))
    // A destroyed handler that is still used counts for nobody, and is not released a second time.
    let again = Counter(label: "x", factory: registry)
    one.increment()
    other.destroy()
    again.increment()
    #expect(await RegistryPage(registry).samples == ["x_total 1"])
  }

  @Test func `frees kind, name and series of what is destroyed`() async {
    let registry = MetricRegistry(maxSeries: 1)
    let counter = Counter(label: "x", dimensions: [("a", "b")], factory: registry)
    counter.destroy()
    let fractions = FloatingPointCounter(label: "x", factory: registry)
    fractions.destroy()
    let meter = Meter(label: "x_total", factory: registry)
    meter.destroy()
    let recorder = Recorder(label: "x_total", factory: registry)
    recorder.destroy()
    let gauge = Gauge(label: "x_total_sum", factory: registry)
    gauge.destroy()
    let timer = Timer(label: "x", factory: registry)
    timer.destroy()
    Gauge(label: "x_seconds", factory: registry).record(1)
    let page = await RegistryPage(registry)
    #expect(page.samples == ["x_seconds 1"])
    #expect(page.dropped == "0")
  }

  @Test func `destroys neither Semel's own series nor any through a refused handler`() async {
    let registry = MetricRegistry(maxSeries: 1)
    let own = registry.counter(.reloads)
    own.increment()
    own.destroy()
    Meter(label: "kept", factory: registry).set(1)
    Meter(label: "beyond", factory: registry).destroy()
    Counter(label: "kept", factory: registry).destroy()
    let page = await RegistryPage(registry)
    #expect(page.text.contains("\nsemel_reloads_total 1\n"))
    #expect(page.samples == ["kept 1"])
    registry.counter(.reloads).increment()
    #expect(await RegistryPage(registry).text.contains("\nsemel_reloads_total 2\n"))
  }

  @Test func `lets many threads make and destroy series at once without a trace`() async {
    let registry = MetricRegistry()
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for number in 0..<1000 {
            let timer = Timer(label: "x", dimensions: [("a", "\(number % 3)")], factory: registry)
            timer.recordSeconds(1)
            timer.destroy()
          }
        }
      }
    }
    let page = await RegistryPage(registry)
    #expect(page.samples.isEmpty)
    #expect(page.dropped == "0")
  }
}
