import Idempotency
import Telemetry

/// Each route with its policy, its counts, its times and what is suspicious about its keys.
struct RoutesPage {
  private static let warnings: [(kind: Suspicion, text: String)] = [
    (
      .samePayload,
      "came with one payload under ever new keys of one caller, within minutes: a client that makes a key for each retry is not protected"
    ),
    (
      .sharedKey,
      "had a key that another caller had used just before: a key of several clients, or a retry under a new token"
    ),
    (.weakKey, "had a key that is short or repetitive: another intent may get the same one by accident"),
    (
      .mismatches,
      "were refused in a row since their keys had another payload: a client that uses a key twice"
    ),
  ]

  let console: Console

  func content() async -> View {
    let policies = await console.recordAdmin.currentRoutes()
    let figures = console.metrics.routeFigures
    let configured = policies.map(\.name)
    let gone = figures.filter { !$0.name.isEmpty && !configured.contains($0.name) && $0.keyed > 0 }
    var routes: [View] = []
    for (number, policy) in policies.enumerated() {
      routes.append(route(number, policy.name, policy, figures.first { $0.name == policy.name }))
    }
    for (number, figure) in gone.enumerated() {
      routes.append(route(policies.count + number, figure.name, nil, figure))
    }
    return view(["routes": routes, "has_routes": !routes.isEmpty, "legend": Chart.legend])
  }

  private func route(_ number: Int, _ name: String, _ policy: RoutePolicy?, _ figures: RouteFigures?) -> View
  {
    let (samples, totals) = (console.history(of: name).hour, figures?.series ?? [0, 0, 0, 0, 0])
    let (all, recent) = (totals.reduce(0, +), samples.reduce(0) { $0 + $1.reduce(0, +) })
    let refusals = RefusalReason.allCases.compactMap { reason -> View? in
      let count = figures?.refusals[reason] ?? 0
      return count > 0 ? view(["reason": reason.text, "count": Words.number(count)]) : nil
    }
    return view([
      "route_text": name, "anchor": "route-\(name.queryValue)", "gone": policy == nil,
      "shadowed": policy?.shadow == true,
      "warnings": Self.warnings(figures, policy),
      "chart": Chart(name: "hour\(number)").columns(
        samples, title: "Requests of \(name) in the last hour: \(recent)", span: ["−60 min", "", "now"],
        unit: "requests a minute"),
      "numbers": Chart.table(samples, fold: 10) { "−\(60 - $0 * 10) min" },
      "share": all == 0 ? "" : Chart(name: "share\(number)").share(totals, title: Self.shares(totals)),
      "shares_text": Self.shares(totals), "refusals": refusals, "has_refusals": !refusals.isEmpty,
      "phases": RequestPart.allCases.compactMap { Self.phase($0, figures?.parts[$0]) },
      "has_policy": policy != nil, "facts": policy.map(Self.facts) ?? [],
    ])
  }

  private static func shares(_ totals: [Int]) -> String {
    let all = totals.reduce(0, +)
    guard all > 0 else { return "No request with a key has come since the start." }
    let hits = Double(totals[1] + totals[2]) / Double(all) * 100
    let parts = zip(CountSeries.all, totals).filter { $1 > 0 }.map { "\(Words.number($1)) \($0.name)" }
    return
      "\(Words.count(all, "request", "requests")): \(parts.joined(separator: ", ")). Hit rate \(Int(hits.rounded())) %."
  }

  private static func warnings(_ figures: RouteFigures?, _ policy: RoutePolicy?) -> [View] {
    var found = warnings.compactMap { kind, text -> View? in
      let count = figures?.suspicions[kind] ?? 0
      guard count > 0 else { return nil }
      return view(["text": "\(Words.count(count, "request", "requests")) \(text).", "tone": "warn"])
    }
    if let lost = figures?.lost, lost > 0 {
      found.append(
        view([
          "text": "\(Words.count(lost, "outcome was", "outcomes were")) lost since the start.",
          "tone": "warn",
        ]))
    }
    return found
  }

  private static func phase(_ part: RequestPart, _ durations: RouteFigures.Durations?) -> View? {
    guard let durations, durations.count > 0 else { return nil }
    let names: [RequestPart: String] = [.claim: "claim", .backend: "backend", .record: "record"]
    let name = names[part] ?? part.text
    return view([
      "phase": name, "count": Words.number(durations.count),
      "mean": Words.span(seconds: durations.meanSeconds),
      "half": quantile(0.5, durations), "most": quantile(0.99, durations),
      "bars": Chart(name: "").histogram(
        durations.buckets.map(\.count), title: "Distribution of the times of \(name)"),
    ])
  }

  /// The upper bound of the bucket that a quantile is in.
  private static func quantile(_ share: Double, _ durations: RouteFigures.Durations) -> String {
    var left = share * Double(durations.count)
    for bucket in durations.buckets {
      left -= Double(bucket.count)
      if left <= 0 { return bucket.bound.map(Words.span(seconds:)) ?? "more than a minute" }
    }
    return "–"
  }

  private static func facts(_ policy: RoutePolicy) -> [View] {
    let methods =
      policy.match.methods.isEmpty ? "the unsafe methods" : policy.match.methods.joined(separator: ", ")
    var facts = [
      fact("Takes", "\(methods) \(policy.match.path?.text ?? "any path")", code: true),
      fact("Upstream", policy.upstream.name), fact("Keys", policy.idempotency.rawValue),
    ]
    guard policy.isProtected else { return facts.compactMap(\.self) }
    facts += [
      fact("Key from", policy.key.from.map(\.text).joined(separator: ", "), code: true),
      fact(
        "Caller",
        policy.caller.map { $0.parts.isEmpty ? "all are one" : $0.parts.map(\.text).joined(separator: ", ") },
        code: true),
      fact(
        "Duplicates",
        policy.duplicates == .wait ? "wait up to \(Words.span(policy.waitTimeout))" : "are refused"),
      fact("Replayed for", Words.span(policy.retention)), fact("Remembered for", Words.span(policy.remember)),
      fact("Lease", Words.span(policy.lease)), fact("Unknown outcome", policy.onUnknown.rawValue),
      fact("Without the store", policy.onStoreFailure == .open ? "runs unprotected" : "is refused"),
      fact("Attempts", policy.maxAttempts.map { "at most \($0)" }),
      fact("Explains mismatches", policy.explainsMismatch ? "yes" : nil),
    ]
    return facts.compactMap(\.self)
  }
}
