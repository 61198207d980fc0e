import Admin
import ArgumentParser
import Foundation
import Glibc
import Platform
import Telemetry

struct Tail: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail",
    abstract: "Follow the keyed, the refused and the shadowed requests of a running Semel, a line each.",
    discussion: """
      A line has the time, method, route, status, outcome and duration, then the digests of key and caller as the log \
      shows them, and the record's id. It costs requests nothing: where more happens than can be shown, lines are left \
      out and counted.
      """)

  @Option(help: "The number of earlier lines to begin with, of those wanted, as far as the node remembers.")
  var last = 10

  @Option(help: "Only lines of this route.")
  var route: String?

  private static let outcomes = RequestOutcome.values + [JournalEntry.Event.lost.rawValue]

  @Option(help: "Only lines of this outcome, such as executed, replayed, refused or lost.")
  var outcome: String?

  @Flag(help: "Print what there is, and end.")
  var noFollow = false

  @Flag(help: "Print JSON, a line each.")
  var json = false

  @OptionGroup var call: AdminCall

  func validate() throws {
    guard last >= 0 else { throw ValidationError("--last is a number of lines") }
    guard outcome.map(Self.outcomes.contains) ?? true else {
      throw ValidationError("--outcome is one of \(Self.outcomes.joined(separator: ", "))")
    }
  }

  func run() throws {
    Self.endWithReader()
    if let route { try call.checkRoute(route) }
    var query = "last=\(last)"
    if route != nil || outcome != nil {
      query = "from=\(try showEarlier())"
      if noFollow { return }
    }
    while true {
      let (lines, end) = try reply(to: query, waits: !noFollow)
      if end.missed > 0 { print(json ? #"{"missed":\#(end.missed)}"# : "… \(end.missed) more, not shown") }
      for line in lines { try show(line) }
      try StandardStreams.finishOutput()
      if noFollow, lines.isEmpty || end.next == 0 { return }
      query = "from=\(end.next)"
    }
  }

  /// Ends the process when the reader of its output does: the next line that would notice it may be far.
  private static func endWithReader() {
    _ = startThread {
      // No event is requested: the call returns for an error or a hang-up alone.
      var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
      while poll(&output, 1, -1) < 0, errno == EINTR {}
      Glibc.exit(0)
    }
  }

  /// Shows the last ones that are wanted of all that the node remembers, and returns the number of the next event.
  private func showEarlier() throws -> Int {
    var found: [Data] = []
    var query = "last=\(Int32.max)"
    while true {
      let (lines, end) = try reply(to: query, waits: false)
      found = Array((found + (try lines.filter { try wanted($0) != nil })).suffix(last))
      // Fewer than a part may have are the last ones.
      guard lines.count >= AdminServer.maxLines else {
        for line in found { try show(line) }
        try StandardStreams.finishOutput()
        return end.next
      }
      query = "from=\(end.next)"
    }
  }

  private func reply(to query: String, waits: Bool) throws -> (lines: [Data], end: End) {
    let reply = try call.send("GET", "/v1/requests?\(query)" + (waits ? "&wait=5" : ""))
    let lines = reply.split(separator: UInt8(ascii: "\n")).map { Data($0) }
    guard let last = lines.last else { throw call.otherListener }
    return (lines.dropLast(), try call.read(End.self, from: last, by: RecordList.decoder))
  }

  private struct End: Decodable {
    let missed: Int
    let next: Int
  }

  private func show(_ line: Data) throws {
    guard let request = try wanted(line) else { return }
    print(json ? String(decoding: line, as: UTF8.self) : request.text)
  }

  /// The event of a line; `nil` unless it has the requested route and outcome.
  private func wanted(_ line: Data) throws -> RequestDocument? {
    let request = try call.read(RequestDocument.self, from: line, by: RecordList.decoder)
    return (route == nil || request.route == route) && (outcome == nil || request.verdict == outcome)
      ? request : nil
  }
}

extension RequestDocument {
  fileprivate var verdict: String { outcome ?? event }

  /// The line for a terminal. Texts from clients are escaped, so that they cannot control the terminal.
  fileprivate var text: String {
    let status = status.map { "\($0)" } ?? "---"
    var parts: [String] = [
      String(time.dropFirst(11)), Self.plain(method).padding(to: 6), (route ?? "-").padding(to: 12),
      Terminal.coloured(status, colour), Terminal.coloured(verdict.padding(to: 9), colour),
    ]
    if let durationMs { parts.append("\(Int(durationMs.rounded())) ms".padding(to: 7)) }
    let attempt = attempt.map { "\($0)" }
    let named: [(String, String?)] = [
      ("attempt", attempt), ("reason", reason), ("would", would), ("cause", cause), ("from", source),
      ("key", key), ("caller", caller), ("client", client.map(Self.plain)), ("record", record),
    ]
    parts += named.compactMap { name, value in value.map { "\(name)=\($0)" } }
    return parts.joined(separator: " ")
  }

  private var colour: Terminal.Colour? {
    switch status ?? 0 {
    case 200..<400: .good
    case 400..<500: .warning
    case 500...: .bad
    default: verdict == JournalEntry.Event.lost.rawValue ? .bad : nil
    }
  }

  private static func plain(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { 0x21...0x7E ~= $0.value ? $0 : "?" }))
  }
}
