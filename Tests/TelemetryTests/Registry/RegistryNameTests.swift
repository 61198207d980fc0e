import CoreMetrics
import Telemetry
import Testing

/// A name given to swift-metrics.
struct RegistryNameTests {
  private let registry = MetricRegistry()

  @Test(arguments: [
    ("jobs", "jobs_total"), ("jobs_total", "jobs_total"), ("http.server-jobs", "http_server_jobs_total"),
    ("2xx", "_2xx_total"), ("job:rate", "job_rate_total"), ("größe 1", "gr____e_1_total"),
    ("__a", "_a_total"), ("", "__total"), ("a\nb", "a_b_total"),
  ])
  func `becomes one of Prometheus's`(label: String, name: String) async {
    Counter(label: label, factory: registry).increment()
    let page = await RegistryPage(registry)
    #expect(page.samples == ["\(name) 1"])
    page.expectIsValid()
  }

  @Test(arguments: [
    ([("http.route", "/a/{id}")], #"{http_route="/a/{id}"}"#),
    ([("b", "2"), ("a", "1")], #"{a="1",b="2"}"#),
    ([("a.b", "1"), ("a_b", "2"), ("a-b", "3")], #"{a_b="1",a_b_="2",a_b__="3"}"#),
    ([("__name__", "other")], #"{_name__="other"}"#),
    ([("", "x"), ("1", "y")], #"{_="x",_1="y"}"#),
    ([("empty", ""), ("full", "x")], #"{full="x"}"#),
    ([("a", "1\\2\"3\n4")], #"{a="1\\2\"3\n4"}"#),
    ([("le", "x")], #"{le="x"}"#),
  ])
  func `has dimensions that are labels of Prometheus's`(
    dimensions: [(String, String)], labels: String
  ) async {
    Meter(label: "m", dimensions: dimensions, factory: registry).set(1)
    let page = await RegistryPage(registry)
    #expect(page.samples == ["m\(labels) 1"])
    page.expectIsValid()
  }

  @Test func `stands unchanged in its help, on one line`() async {
    Counter(label: "a\nb\\c", factory: registry).increment()
    #expect(
      await RegistryPage(registry).text.contains(#"# HELP a_b_c_total From swift-metrics: a\nb\\c."# + "\n"))
  }

  @Test func `is refused if it is Semel's own`() async {
    let own = Counters(registry: registry)
    own.add(.connections)
    Counter(label: "semel_connections_total", factory: registry).increment(by: 40)
    Counter(label: "semel.connections", dimensions: [("a", "b")], factory: registry).increment(by: 40)
    Counter(label: "semel_requests", factory: registry).increment(by: 40)
    Meter(label: "semel.in_flight.requests", factory: registry).set(40)
    Timer(label: "semel.request.duration", factory: registry).recordSeconds(40)
    Meter(label: "semel_request_duration_seconds_count", factory: registry).set(40)
    Recorder(label: "semel_connections_total", factory: registry).record(40)
    let page = await RegistryPage(registry)
    #expect(page.samples.isEmpty)
    #expect(page.text.contains("\nsemel_connections_total 1\n"))
    #expect(page.dropped == "7")
    page.expectIsValid()
  }

  @Test func `stays with its first kind`() async {
    Meter(label: "a_total", factory: registry).set(1)
    Counter(label: "a", factory: registry).increment(by: 2)
    Timer(label: "b", factory: registry).recordSeconds(3)
    Recorder(label: "b_seconds", factory: registry).record(3)
    Meter(label: "b_seconds_count", factory: registry).set(4)
    Meter(label: "c_sum", factory: registry).set(5)
    Recorder(label: "c", dimensions: [("a", "b")], factory: registry).record(6)
    let page = await RegistryPage(registry)
    let samples = page.samples.filter { !$0.hasPrefix("b_seconds_bucket") }
    #expect(samples == ["a_total 1", "b_seconds_sum 3", "b_seconds_count 1", "c_sum 5"])
    #expect(page.dropped == "4")
    page.expectIsValid()
  }
}
