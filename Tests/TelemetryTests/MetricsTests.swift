import Telemetry
import Testing

/// The metrics page.
struct MetricsTests {
  private static func record(_ change: (inout AccessLogEntry) -> Void) -> AccessLogEntry {
    var record = AccessLogEntry()
    record.totalMicroseconds = 60
    change(&record)
    return record
  }

  @Test func `has name, help and type of every family, even before anything was counted`() async {
    let page = await Metrics(loops: 2).page()
    for family in MetricFamily.all {
      #expect(page.contains("# HELP \(family.name) \(family.help)\n"))
      #expect(page.contains("# TYPE \(family.name) \(family.kind.rawValue)\n"))
    }
  }

  @Test func `has distinct names, with units`() {
    #expect(Set(MetricFamily.all.map(\.name)).count == MetricFamily.all.count)
    for family in MetricFamily.all {
      #expect(family.name.hasSuffix("_total") == (family.kind == .counter), "\(family.name)")
      if family.kind == .histogram { #expect(family.name.hasSuffix("_seconds"), "\(family.name)") }
      #expect(family.help.hasSuffix("."), "\(family.name)")
    }
  }

  @Test func `adds up what the event loops counted`() async {
    let metrics = Metrics(loops: 2)
    let number = metrics.number(ofRoute: "orders")
    for loop in metrics.loops {
      loop.ended(
        Self.record {
          $0.routeNumber = number
          $0.outcome = .replayed
          $0.source = .cache
        })
    }
    let page = await metrics.page()
    #expect(page.contains(#"semel_requests_total{route="orders",outcome="replayed"} 2"#))
    #expect(page.contains(#"semel_replays_total{route="orders",source="cache"} 2"#))
    #expect(page.contains(#"semel_duplicates_prevented_total{route="orders",by="replay"} 2"#))
    #expect(!page.contains(#"semel_requests_total{route="(none)",outcome="replayed"}"#))
  }

  /// The series of Semel's own families that a page has.
  private static func series(_ page: String) -> Set<Substring> {
    Set(
      page.split(separator: "\n").filter { $0.hasPrefix("semel_") }.compactMap {
        $0.split(separator: " ").first
      })
  }

  @Test func `begins with five series for each route, and has another once it counts`() async throws {
    let metrics = Metrics(loops: 2)
    for route in 1...6 { _ = metrics.number(ofRoute: "route-\(route)") }
    let start = Self.series(await metrics.page())
    let route = start.filter { $0.contains(#"route="route-1""#) }
    #expect(
      route == [
        #"semel_requests_total{route="route-1",outcome="unprotected"}"#,
        #"semel_refusals_total{route="route-1",reason="overloaded"}"#,
        #"semel_outcomes_lost_total{route="route-1"}"#, #"semel_unknown_returns_total{route="route-1"}"#,
        #"semel_unprotected_keys_total{route="route-1"}"#,
      ])
    // Six routes, and the requests that match none.
    #expect(start.count { $0.contains("route=") } == 7 * route.count)
    metrics.loops[1].add(RetryCause.released, route: metrics.number(ofRoute: "route-1"))
    metrics.loops[0].failed(.claim, .unavailable)
    let counted = Self.series(await metrics.page())
    #expect(counted.isSuperset(of: start))
    #expect(
      counted.subtracting(start) == [
        #"semel_retries_total{route="route-1",after="released"}"#,
        #"semel_store_errors_total{command="claim",reason="unavailable"}"#,
      ])
  }

  @Test func `has every counter without labels, and every figure of a gauge, with 0`() async {
    let metrics = Metrics(loops: 1)
    metrics.source {
      [
        MetricFigure(.storeLosses, 0), MetricFigure(.storeDoubts, 0),
        MetricFigure(.openRecords, 0, ("state", "unknown")),
        MetricFigure(.storeRedirects, 0, ("kind", "moved")),
      ]
    }
    let series = Self.series(await metrics.page())
    #expect(
      series.isSuperset(of: ["semel_store_losses_total", "semel_store_doubts", "semel_leases_lapsed_total"]))
    #expect(series.contains(#"semel_open_records{state="unknown"}"#))
    #expect(!series.contains { $0.hasPrefix("semel_store_redirects_total") })
  }

  @Test func `counts what would have become of a shadowed route's requests`() async {
    #expect(ShadowVerdict.values.count == ShadowVerdict.allCases.count)
    for verdict in ShadowVerdict.allCases { #expect(ShadowVerdict(rawValue: verdict.rawValue) == verdict) }
    #expect(ShadowVerdict(rawValue: ShadowVerdict.allCases.count) == nil)
    let metrics = Metrics(loops: 2)
    let number = metrics.number(ofRoute: "orders")
    for loop in metrics.loops { loop.add(ShadowVerdict.refused(.payloadMismatch), route: number) }
    metrics.loops[0].add(ShadowVerdict.replayed, route: number)
    let page = await metrics.page()
    #expect(page.contains(#"semel_shadow_total{route="orders",would="payload_mismatch"} 2"#))
    #expect(page.contains(#"semel_shadow_total{route="orders",would="replayed"} 1"#))
    #expect(!page.contains(#"semel_shadow_total{route="(none)""#))
    #expect(!page.contains(#"would="executed""#))
  }

  @Test func `counts each value in its bucket, below it and in the sum`() async {
    let metrics = Metrics(loops: 1)
    for microseconds in [25, 26, 1_000, 70_000_000] {
      metrics.loops[0].ended(
        Self.record {
          $0.outcome = .executed
          $0.totalMicroseconds = Int64(microseconds)
        })
    }
    let page = await metrics.page()
    let name = #"semel_request_duration_seconds_bucket{route="(none)",outcome="executed",le="#
    #expect(page.contains(name + #""0.000025"} 1"#))
    #expect(page.contains(name + #""0.00005"} 2"#))
    #expect(page.contains(name + #""0.0005"} 2"#))
    #expect(page.contains(name + #""0.001"} 3"#))
    #expect(page.contains(name + #""2.5"} 3"#))
    #expect(page.contains(name + #""60"} 3"#))
    #expect(page.contains(name + #""+Inf"} 4"#))
    #expect(
      page.contains(#"semel_request_duration_seconds_sum{route="(none)",outcome="executed"} 70.001051"#))
  }

  @Test func `counts a part that took place, however short it was, and no other`() async {
    let metrics = Metrics(loops: 1)
    metrics.loops[0].ended(
      Self.record {
        $0.outcome = .executed
        $0.claimMicroseconds = 0
      })
    let page = await metrics.page()
    let name = #"semel_request_part_duration_seconds_count{route="(none)",part="#
    #expect(page.contains(name + #""claim"} 1"#))
    #expect(!page.contains(name + #""backend"} 1"#) && !page.contains(name + #""record"} 1"#))
  }

  @Test func `returns the same route for a name, however often it is looked up`() {
    let metrics = Metrics(loops: 1)
    let number = metrics.number(ofRoute: "a")
    #expect(metrics.number(ofRoute: "b") != number)
    #expect(metrics.number(ofRoute: "a") == number)
  }

  @Test func `takes the figures of its sources`() async {
    let metrics = Metrics(loops: 1)
    metrics.source { [MetricFigure(.cacheHits, 7), MetricFigure(.openRecords, 3, ("state", "a\"b\\c\nd"))] }
    let page = await metrics.page()
    #expect(page.contains("semel_cache_hits_total 7\n"))
    #expect(page.contains(#"semel_open_records{state="a\"b\\c\nd"} 3"#))
  }

  @Test(arguments: [RequestOutcome.values.count])
  func `has a value for each case of each label`(count: Int) {
    #expect(count == RequestOutcome.allCases.count)
    #expect(RefusalReason.values.count == RefusalReason.allCases.count)
    #expect(StoreCommand.values.count == StoreCommand.allCases.count)
    #expect(FailureCategory.values.count == FailureCategory.allCases.count)
    #expect(Set(RefusalReason.values).count == RefusalReason.values.count)
  }
}
