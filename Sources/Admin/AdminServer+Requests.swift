import Foundation
import Hummingbird
import Idempotency
import NIOCore
import ServiceLifecycle
import Telemetry

/// The live view: one line of JSON for each event of a keyed, refused or shadowed request.
extension AdminServer {
  /// The maximum number of lines in one response.
  public static let maxLines = 512
  /// The maximum time for which a request waits for something new. A stop of the process waits no longer.
  private static let maxWaitSeconds = 8.0
  /// The time between two looks at the journal, so that requests pay nothing for those who watch them.
  private static let lookInterval = Duration.milliseconds(100)

  func addRequests(to routes: AdminRoutes, journal: RequestJournal) {
    routes.on(.listRequests) { request, _ in
      let query = try request.parameters("last", "from", "wait")
      let number = { (name: String) throws -> Double? in
        guard let text = query[name] else { return nil }
        guard let value = Double(text), value >= 0, value < 1e15 else {
          throw AdminError.bad("\(name) must be a number")
        }
        return value
      }
      let wait = min(try number("wait") ?? 0, Self.maxWaitSeconds)
      let last = Int(try number("last") ?? 0)
      // A number beyond the end is one of an earlier process.
      let from = try number("from").map { Int($0) }.map { $0 > journal.end ? 0 : $0 }
      let part = await Self.part(of: journal, from: from ?? max(0, journal.end - last), wait: wait)
      return Response.text(try Self.lines(part), status: .ok, type: "application/x-ndjson")
    }
  }

  private static func part(
    of journal: RequestJournal, from start: Int, wait: Double
  ) async -> RequestJournal.Part {
    let end = ContinuousClock.now + .seconds(wait)
    while true {
      let part = journal.part(from: start, max: maxLines)
      guard part.entries.isEmpty, ContinuousClock.now < end, !Task.isShuttingDownGracefully else {
        return part
      }
      do { try await Task.sleep(for: lookInterval) } catch { return part }
    }
  }

  /// The events, a line each, and a last line with the number of the next one and that of those missed.
  private static func lines(_ part: RequestJournal.Part) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    var lines: [String] = []
    for entry in part.entries {
      lines.append(String(decoding: try encoder.encode(RequestDocument(entry)), as: UTF8.self))
    }
    lines.append(#"{"missed":\#(part.missed),"next":\#(part.next)}"#)
    return lines.joined(separator: "\n") + "\n"
  }
}

/// One event of a request as the admin listener shows it.
public struct RequestDocument: Codable {
  public var time: String
  public var event: String
  public var record: String?
  public var route: String?
  public var method: String
  public var client: String?
  public var status: Int?
  public var outcome: String?
  public var reason: String?
  /// The end that a request of a shadowed route would have had.
  public var would: String?
  public var source: String?
  public var cause: String?
  public var attempt: Int?
  public var key: String?
  public var caller: String?
  public var durationMs: Double?

  init(_ entry: JournalEntry) {
    time = Timestamp.text(milliseconds: entry.time)
    event = entry.event.rawValue
    record = entry.record?.text
    route = entry.route
    method = entry.method ?? ""
    client = entry.client
    cause = entry.loss?.rawValue
    attempt = entry.attempt
    key = entry.keyDigest
    caller = entry.callerDigest
    guard entry.event == .ended else { return }
    status = entry.status
    outcome = entry.outcome.text
    reason = entry.refusal?.text
    would = entry.would?.text
    source = entry.source?.text
    durationMs = entry.microseconds.map { Double($0) / 1000 }
  }
}

extension Request {
  /// The parameters of the query. One that is not known, or given twice, is refused, not left out silently.
  func parameters(_ known: String...) throws(AdminError) -> [String: String] {
    var parameters: [String: String] = [:]
    for (name, value) in uri.queryParameters where !name.isEmpty {
      try require(
        known.contains(String(name)),
        "there is no parameter \(name); there are: \(known.joined(separator: ", "))")
      guard parameters.updateValue(String(value), forKey: String(name)) == nil else {
        throw AdminError.bad("\(name) is given twice: give it once")
      }
    }
    return parameters
  }
}
