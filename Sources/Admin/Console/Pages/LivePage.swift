import Foundation
import Hummingbird
import Idempotency
import NIOCore
import ServiceLifecycle
import Telemetry

/// The access log as it arrives.
struct LivePage {
  /// The lines of the page itself, and of a look of its stream: 200 a second.
  private static let (shown, maxLines) = (100, 50)
  private static let lookInterval = Duration.milliseconds(250)
  /// The looks after which a silent stream shows that it is there.
  private static let maxSilence = 40

  let console: Console
  let frame: ConsoleFrame

  private struct Filter: Sendable {
    let route: String
    let outcome: String

    init(_ request: Request) throws {
      let query = try request.parameters("route", "outcome", "from")
      (route, outcome) = (query["route"] ?? "", query["outcome"] ?? "")
      from = query["from"].flatMap { Int($0) }
    }

    /// The number of the event to begin with; `nil` for the next one.
    let from: Int?

    func matches(_ event: RequestDocument) -> Bool {
      (route.isEmpty || event.route == route)
        && (outcome.isEmpty || (event.outcome ?? event.event) == outcome)
    }

    var query: String { "route=\(route.queryValue)&outcome=\(outcome.queryValue)" }
  }

  private var journal: RequestJournal? { console.recordAdmin.journal }

  func show(_ request: Request) async throws -> Response {
    let filter = try Filter(request)
    let end = journal?.end ?? 0
    let events = (journal?.all ?? []).map(RequestDocument.init).filter(filter.matches).suffix(Self.shown)
    let names = await console.recordAdmin.currentRoutes().map(\.name)
    let outcomes = RequestOutcome.values + [JournalEntry.Event.lost.rawValue]
    return frame.page(
      .live,
      view([
        "route_names": names.map { view(["name": $0, "selected": $0 == filter.route]) },
        "outcomes": outcomes.map { view(["name": $0, "selected": $0 == filter.outcome]) },
        "shown": events.count, "lines": events.reversed().map(\.line), "nothing": events.isEmpty,
        "events": "\(console.root)/live/events?\(filter.query)&from=\(end)",
      ]))
  }

  /// The stream of server-sent events: lines of the table, and the number of those that were left out.
  func stream(_ request: Request) async throws -> Response {
    let filter = try Filter(request)
    guard let journal, let place = console.streams.enter() else {
      return ConsoleFrame.response("event: full\ndata:\n\n", type: "text/event-stream")
    }
    // A number beyond the end is one of an earlier process.
    let start = filter.from.map { $0 > journal.end ? 0 : $0 } ?? journal.end
    var response = Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"])
    response.headers.protect()
    let first = Follower(journal: journal, frame: frame, filter: filter, next: start)
    response.body = ResponseBody { [place] writer in
      var follower = first
      defer { withExtendedLifetime(place) {} }
      while !Task.isCancelled, !Task.isShuttingDownGracefully {
        let text = follower.look()
        if !text.isEmpty { try await writer.write(ByteBuffer(string: text)) }
        try await Task.sleep(for: Self.lookInterval)
      }
      try await writer.finish(nil)
    }
    return response
  }

  private struct Follower: Sendable {
    let journal: RequestJournal
    let frame: ConsoleFrame
    let filter: Filter
    var next: Int
    var omitted = 0
    var silence = LivePage.maxSilence

    /// The text for what has come since the last look; empty for none.
    mutating func look() -> String {
      let part = journal.part(from: next, max: RequestJournal.capacity)
      next = part.next
      let events = part.entries.map(RequestDocument.init).filter(filter.matches)
      let left = part.missed + max(0, events.count - LivePage.maxLines)
      var text = ""
      if !events.isEmpty {
        let lines = events.suffix(LivePage.maxLines).reversed().map { frame.part("line", $0.line) }.joined()
        text += "event: lines\ndata: " + lines.replacing("\n", with: " ") + "\n\n"
      }
      if left > 0 {
        omitted += left
        text += "event: omitted\ndata: \(omitted)\n\n"
      }
      silence += 1
      if text.isEmpty, silence > LivePage.maxSilence { text = ": no request\n\n" }
      if !text.isEmpty { silence = 0 }
      return text
    }
  }
}

extension RequestDocument {
  private static let bad: Set = ["unknown", "lost", "not_stored", "cut"]
  private static let good: Set = ["executed", "replayed", "passed", "reported"]

  var line: View {
    let verdict = outcome ?? event
    let named: [(String, String?)] = [
      ("", reason), ("would be ", would), ("cause ", cause), ("from ", source),
      ("attempt ", attempt.flatMap { $0 > 1 ? "\($0)" : nil }), ("key ", key), ("caller ", caller),
      ("client ", client),
    ]
    return view([
      "time": Words.time(time), "method": method, "route_text": route ?? "–",
      "status_text": status.map { "\($0)" } ?? "–",
      "verdict": Words.state(verdict),
      "tone": Self.bad.contains(verdict) ? "bad" : Self.good.contains(verdict) ? "good" : "warn",
      "took": durationMs.map { Words.span(seconds: $0 / 1000) } ?? "–",
      "details": named.compactMap { name, value in value.map { name + $0 } }.joined(separator: ", "),
      "record": record, "short_id": record.map(Words.short),
    ])
  }
}
