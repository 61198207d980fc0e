import ArgumentParser
import Foundation

/// `semel tail`: follows what a running Semel does.
struct Tail: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Follow the keyed and the refused requests of a running Semel, a line each.",
    discussion: """
      A line has the time, method, route, status, outcome and duration, then the digests of key and caller as the log \
      shows them, and the record's id. It costs requests nothing: where more happens than can be shown, lines are left \
      out and counted.
      """)

  @Option(help: "The number of earlier lines to begin with, as far as the node remembers them.")
  var last = 10

  @Option(help: "Only lines of this route.")
  var route: String?

  @Option(help: "Only lines of this outcome, such as executed, replayed, refused or lost.")
  var outcome: String?

  @Flag(help: "Print what there is, and end.")
  var noFollow = false

  @Flag(help: "Print JSON, a line each.")
  var json = false

  @OptionGroup var call: AdminCall

  func validate() throws {
    guard last >= 0 else { throw ValidationError("--last is a number of lines") }
  }

  func run() throws {
    var query = "last=\(last)"
    while true {
      let reply = try call.send("GET", "/v1/requests?\(query)" + (noFollow ? "" : "&wait=5"))
      let lines = reply.split(separator: UInt8(ascii: "\n"))
      guard let end = try lines.last.map({ try RecordList.decoder.decode(End.self, from: Data($0)) }) else {
        throw ExitCode.failure
      }
      if end.missed > 0 { print(json ? #"{"missed":\#(end.missed)}"# : "… \(end.missed) more, not shown") }
      for line in lines.dropLast() { try show(Data(line)) }
      fflush(nil)
      if noFollow, lines.count == 1 || end.next == 0 { return }
      query = "from=\(end.next)"
    }
  }

  /// The last line of a reply.
  private struct End: Decodable {
    let missed: Int
    let next: Int
  }

  private func show(_ line: Data) throws {
    let request = try RecordList.decoder.decode(TailLine.self, from: line)
    guard route == nil || request.route == route, outcome == nil || request.verdict == outcome else { return }
    print(json ? String(decoding: line, as: UTF8.self) : request.text)
  }
}

/// One event of a request.
struct TailLine: Decodable {
  let time: String
  let event: String
  let record: String?
  let route: String?
  let method: String
  let client: String?
  let status: Int?
  let outcome: String?
  let reason: String?
  let source: String?
  let cause: String?
  let attempt: Int?
  let key: String?
  let caller: String?
  let durationMs: Double?

  /// The outcome; `lost` for the loss of one.
  var verdict: String { outcome ?? event }

  /// The line for a terminal. What a client sent is escaped, so that it cannot steer the terminal.
  var text: String {
    let status = status.map { "\($0)" } ?? "---"
    var parts: [String] = [
      String(time.dropFirst(11)), Self.plain(method).padding(to: 6), (route ?? "-").padding(to: 12), status,
      verdict.padding(to: 9),
    ]
    if let durationMs { parts.append("\(Int(durationMs.rounded())) ms".padding(to: 7)) }
    let attempt = attempt.map { "\($0)" }
    let named: [(String, String?)] = [
      ("attempt", attempt), ("reason", reason), ("cause", cause), ("from", source), ("key", key),
      ("caller", caller), ("client", client.map(Self.plain)), ("record", record),
    ]
    parts += named.compactMap { name, value in value.map { "\(name)=\($0)" } }
    return parts.joined(separator: " ")
  }

  private static func plain(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { 0x21...0x7E ~= $0.value ? $0 : "?" }))
  }
}
