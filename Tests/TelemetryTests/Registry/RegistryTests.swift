import CoreMetrics
import Telemetry
import Testing

/// A metric of swift-metrics.
struct RegistryTests {
  private let registry = MetricRegistry()

  @Test func `is on the page, with help, kind and labels`() async {
    Counter(label: "jobs.done", dimensions: [("queue.name", "a\"b")], factory: registry).increment(by: 3)
    let page = await RegistryPage(registry)
    let expected = """
      # HELP jobs_done_total From swift-metrics: jobs.done.
      # TYPE jobs_done_total counter
      jobs_done_total{queue_name="a\\"b"} 3

      """
    #expect(page.text.hasSuffix(expected))
    #expect(page.dropped == "0")
  }

  @Test func `counts whole numbers and fractions together, and only upwards`() async {
    let whole = Counter(label: "sent", factory: registry)
    let fractions = FloatingPointCounter(label: "sent", factory: registry)
    whole.increment()
    fractions.increment(by: 0.5)
    whole.increment(by: -7)
    for amount in [-1, Double.nan, .infinity] { fractions.increment(by: amount) }
    #expect(await RegistryPage(registry).samples == ["sent_total 1.5"])
    fractions.reset()
    whole.increment(by: 2)
    #expect(await RegistryPage(registry).samples == ["sent_total 2"])
  }

  @Test func `is a gauge if it is set`() async {
    let meter = Meter(label: "depth", factory: registry)
    meter.set(5)
    meter.increment(by: 2.5)
    meter.decrement()
    meter.increment(by: Double.nan)
    Gauge(label: "temperature", factory: registry).record(-3.25)
    Gauge(label: "unknown", factory: registry).record(Double.nan)
    Meter(label: "bound", factory: registry).set(-Double.infinity)
    let page = await RegistryPage(registry)
    #expect(page.samples == ["bound -Inf", "depth 6.5", "temperature -3.25", "unknown NaN"])
    #expect(page.text.contains("# TYPE depth gauge\n"))
    #expect(page.text.contains("# TYPE temperature gauge\n"))
    page.expectIsValid()
  }

  @Test func `is a histogram of seconds if it is timed`() async {
    let timer = Timer(
      label: "http.server.request.duration", dimensions: [("le", "x")], preferredDisplayUnit: .milliseconds,
      factory: registry)
    timer.recordNanoseconds(25_000)
    timer.recordNanoseconds(25_001)
    timer.recordMilliseconds(1)
    timer.recordSeconds(70)
    timer.recordNanoseconds(-9)
    let page = await RegistryPage(registry)
    let name = "http_server_request_duration_seconds"
    #expect(page.text.contains("# TYPE \(name) histogram\n"))
    let counts = [("0.000025", 2), ("0.00005", 3), ("0.0005", 3), ("0.001", 4), ("60", 4), ("+Inf", 5)]
    for (bound, count) in counts {
      #expect(page.samples.contains(#"\#(name)_bucket{le_="x",le="\#(bound)"} \#(count)"#), "\(bound)")
    }
    #expect(page.samples.contains(#"\#(name)_sum{le_="x"} 70.001050001"#))
    #expect(page.samples.contains(#"\#(name)_count{le_="x"} 5"#))
    page.expectIsValid()
  }

  @Test func `is a histogram of its own unit if it is recorded`() async {
    let recorder = Recorder(label: "body.size", factory: registry)
    for value in [0, 1, 17, 1 << 40] { recorder.record(value) }
    recorder.record(0.25)
    recorder.record(Double.infinity)
    let page = await RegistryPage(registry)
    for (bound, count) in [("1", 3), ("16", 3), ("64", 4), ("1073741824", 4), ("+Inf", 5)] {
      #expect(page.samples.contains(#"body_size_bucket{le="\#(bound)"} \#(count)"#), "\(bound)")
    }
    #expect(page.samples.contains("body_size_sum 1099511627794.25"))
    page.expectIsValid()
  }

  @Test func `has one handler for one label and its dimensions, in whatever order`() {
    let dimensions = [("a", "1"), ("b", "2")]
    let handler = registry.makeCounter(label: "x", dimensions: dimensions)
    #expect(handler === registry.makeCounter(label: "x", dimensions: dimensions.reversed()))
    #expect(handler === registry.makeFloatingPointCounter(label: "x_total", dimensions: dimensions))
    #expect(handler !== registry.makeCounter(label: "x", dimensions: [("a", "1"), ("b", "3")]))
    #expect(handler !== registry.makeCounter(label: "y", dimensions: dimensions))
    let gauge = registry.makeMeter(label: "g", dimensions: [])
    #expect(gauge === registry.makeRecorder(label: "g", dimensions: [("none", "")], aggregate: false))
  }

  @Test func `loses nothing when many threads record it`() async {
    let counter = Counter(label: "counted", factory: registry)
    let fractions = FloatingPointCounter(label: "added", factory: registry)
    let meter = Meter(label: "moved", factory: registry)
    let recorder = Recorder(label: "seen", factory: registry)
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<20_000 {
            counter.increment()
            fractions.increment(by: 0.5)
            meter.increment(by: 2)
            recorder.record(3)
          }
        }
      }
    }
    let samples = await RegistryPage(registry).samples
    let counts = ["added_total 80000", "counted_total 160000", "moved 320000", "seen_count 160000"]
    for line in counts + ["seen_sum 480000"] { #expect(samples.contains(line), "\(line)") }
  }

  @Test func `loses nothing when many threads look it up`() async {
    await withTaskGroup { [registry] group in
      for _ in 0..<8 {
        group.addTask {
          for number in 0..<1000 {
            Counter(label: "x", dimensions: [("a", "\(number % 2)")], factory: registry).increment()
          }
        }
      }
    }
    #expect(await RegistryPage(registry).samples == [#"x_total{a="0"} 4000"#, #"x_total{a="1"} 4000"#])
  }
}
