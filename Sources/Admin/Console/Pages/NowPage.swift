import Idempotency
import Telemetry

/// The parts of the process that pages report on, besides the records.
struct ConsoleSurroundings: Sendable {
  let readiness: @Sendable () async -> Readiness
  let configuration: @Sendable () async -> ConfigurationStatus?
  let lines: @Sendable () async -> [String]
  let settings: @Sendable () async -> String
}

/// The first page: whether anyone is charged twice, what needs somebody, whether it protects and is healthy.
struct NowPage {
  private static let runbooks = [
    "time_out": "SemelOutcomesBeingLost", "connection_lost": "SemelOutcomesBeingLost",
  ]

  let console: Console
  let surroundings: ConsoleSurroundings

  func content() async -> View {
    let (groups, fault) = await console.survey.look()
    let histories = console.metrics.routeFigures.filter { !$0.name.isEmpty && $0.keyed > 0 }.map {
      (name: $0.name, samples: console.history(of: $0.name).minutes)
    }
    let (readiness, lines) = (await surroundings.readiness(), await surroundings.lines())
    var content = await unknown(groups, fault)
    content["answers"] = [
      await doubled(), need(groups, fault), protection(histories), health(readiness, lines),
    ]
    let charts = histories.enumerated().map { chart($0.offset, $0.element.name, $0.element.samples) }
    content["charts"] = charts
    content["has_charts"] = !charts.isEmpty
    content["legend"] = Chart.legend
    content["lines"] = lines.map { view(["text": $0, "tone": Self.isBad($0) ? "bad" : "good"]) }
    content["facts"] = await facts(groups, readiness)
    content["text"] = ""
    content["by_caller"] = false
    return content
  }

  private static func isBad(_ line: String) -> Bool {
    ["not reached", "refused", "fails", "failed", "not durable", "lost"].contains { line.contains($0) }
  }

  private func answer(_ question: String, _ tone: String, _ value: String, _ detail: String) -> View {
    view(["question": question, "tone": tone, "value": value, "detail": detail])
  }

  private func doubled() async -> View {
    let suspects = Int(await console.metrics.total(of: .storeSuspects) ?? 0)
    return answer(
      "Is anyone charged twice?", suspects == 0 ? "good" : "bad",
      suspects == 0 ? "No sign of it" : Words.count(suspects, "claim in doubt", "claims in doubt"),
      suspects == 0
        ? "No claim of a running request was missing from the store since the start"
        : "The store lacked claims of running requests: another delivery may have run. The log names the records"
    )
  }

  private func need(_ groups: OpenGroups?, _ fault: String?) -> View {
    let question = "What needs me?"
    guard let groups else {
      return answer(
        question, fault == nil ? "warn" : "bad", fault == nil ? "Counting" : "Not known",
        fault == nil ? "The open records are being counted" : "The store cannot be walked")
    }
    let sum = groups.unknown + groups.unreadable
    return answer(
      question, sum == 0 ? "good" : "bad",
      sum == 0
        ? "Nothing"
        : groups.unknown > 0
          ? Words.count(groups.unknown, "unknown outcome", "unknown outcomes")
          : Words.count(groups.unreadable, "unreadable record", "unreadable records"),
      sum == 0
        ? "No outcome is unknown"
        : "The oldest waits for \(Words.span(groups.groups.map(\.oldest).max() ?? 0))")
  }

  private func protection(_ histories: [(name: String, samples: [[Int]])]) -> View {
    let sums = histories.flatMap(\.samples).reduce([0, 0, 0, 0, 0]) { zip($0, $1).map(+) }
    let (all, prevented) = (sums.reduce(0, +), sums[1] + sums[2])
    return answer(
      "Is it protecting?", all == 0 ? "none" : "good",
      all == 0 ? "Nothing came" : Words.count(prevented, "repeat kept back", "repeats kept back"),
      all == 0
        ? "No request with a key in the last five minutes"
        : "\(Words.number(sums[0])) executed, \(Words.number(sums[3])) refused in the last five minutes")
  }

  private func health(_ readiness: Readiness, _ lines: [String]) -> View {
    let bad = lines.filter(Self.isBad)
    switch readiness {
    case .notReady(let reason): return answer("Is it healthy?", "bad", "Not ready", reason)
    case .ready:
      return answer(
        "Is it healthy?", bad.isEmpty ? "good" : "warn", bad.isEmpty ? "Yes" : "Not all of it",
        bad.first ?? "The store and the upstreams are reached")
    }
  }

  private func unknown(_ groups: OpenGroups?, _ fault: String?) async -> View {
    let counted = groups.map { "\(Words.span(seconds: Self.seconds(since: $0.takenAt))) ago" } ?? ""
    let routes = await console.recordAdmin.currentRoutes()
    let rows = (groups?.oldest ?? []).map { record in
      RecordDocument(record, by: routes.first { $0.name == record.attribution?.route }).row
    }
    return view([
      "fault": fault, "walking": groups == nil && fault == nil, "counted": counted,
      "counted_text": groups.map {
        "\(Words.count($0.inFlight, "request runs", "requests run")) now. Counted \(counted)."
      },
      "nothing": groups.map { $0.unknown == 0 } ?? false,
      "has_groups": groups.map { $0.unknown > 0 } ?? false,
      "groups": (groups?.groups ?? []).sorted { $0.oldest > $1.oldest }.map(Self.row), "rows": rows,
      "has_rows": !rows.isEmpty,
    ])
  }

  private static func row(_ group: OpenGroups.Group) -> View {
    let query = "state=unknown" + (group.route.isEmpty ? "" : "&route=\(group.route.queryValue)")
    return view([
      "cause": group.cause, "group_route": group.route.isEmpty ? "not known" : group.route,
      "upstream": group.upstream.isEmpty ? "–" : group.upstream, "count": Words.number(group.count),
      "oldest": Words.span(group.oldest), "sample": group.sample?.text ?? "",
      "short_sample": Words.short(group.sample?.text ?? ""), "query": query,
      "runbook": runbooks[group.cause] ?? "SemelOutcomesUnknown",
    ])
  }

  private static func seconds(since instant: ContinuousClock.Instant) -> Double {
    let parts = (ContinuousClock.now - instant).components
    return Double(parts.seconds) + Double(parts.attoseconds) / 1e18
  }

  private func chart(_ number: Int, _ name: String, _ samples: [[Int]]) -> View {
    let total = samples.reduce(0) { $0 + $1.reduce(0, +) }
    return view([
      "route_text": name, "anchor": "route-\(name.queryValue)",
      "total": Words.count(total, "request", "requests"),
      "chart": Chart(name: "now\(number)", width: 400).columns(
        samples, title: "Requests of \(name) in the last five minutes: \(total)",
        span: ["−5 min", "", "now"],
        unit: "requests in 5 s"),
      "numbers": Chart.table(samples, fold: 12) { "−\(5 - $0) min" },
    ])
  }

  private func facts(_ groups: OpenGroups?, _ readiness: Readiness) async -> [View] {
    let status = await surroundings.configuration()
    let counters = console.metrics.counters
    return [
      fact("Node", console.recordAdmin.node),
      fact("Ready", readiness == .ready ? "yes" : "no"),
      fact("Requests in flight", Words.number(counters[.inFlight])),
      fact("Client connections", Words.number(counters[.openConnections])),
      fact("Duplicates that wait", Words.number(counters[.waiting])),
      fact("Records in flight", groups.map { Words.number($0.inFlight) }),
      fact("Claims whose fate is not known", Words.number(console.metrics.claimsLost)),
      fact("Configuration", status.map { "\($0.digest), loaded \($0.loadedAt)" }),
    ].compactMap(\.self)
  }
}
