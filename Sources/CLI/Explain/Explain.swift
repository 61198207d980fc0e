import ArgumentParser
import Foundation
import Idempotency
import Proxy
import Settings
import Wire

struct Explain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show what Semel does with a request, without sending it.",
    discussion: """
      Prints which route takes the request and why the others do not, its key and its source, the caller's parts, what \
      its fingerprint is made of, the classes of its outcomes, and what would be stored, where and for how long. It \
      reads the configuration only, and contacts neither the store nor a backend. Exit code 1 where Semel would refuse \
      the request.

      A path without a host is that of a request to an address. The name that clients write in Host belongs to a \
      record's id and may choose the route: give it by a URL, or by -H 'Host: NAME'.
      """)

  @Option(help: "The configuration file, as an option.")
  var config: String?

  @Option(
    name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
    help: "A field of the request, 'Name: value'.")
  var header: [String] = []

  @Option(
    name: [.customShort("d"), .customLong("data")], parsing: .unconditional,
    help: "The body of the request; @FILE for that of a file.")
  var data: String?

  @Option(
    help: """
      The address that the request comes from, where a route knows its callers by that: the client's, or that of a \
      trusted proxy, which states the client in X-Forwarded-For.
      """)
  var address = "127.0.0.1"

  @Option(
    help: """
      A file with a response of the backend, as `curl -i` prints it; - for the standard input. Says which rule of \
      outcomes it meets, and its class.
      """)
  var response: String?

  @Argument(help: "The configuration file (unless --config gives it), the method, and the URL or the path.")
  var words: [String] = []

  func validate() throws {
    guard words.count == (config == nil ? 3 : 2) else {
      throw ValidationError("give the file, the method and the URL: semel explain FILE METHOD URL")
    }
    try require(
      Self.isTarget(words[words.count - 1], of: words[words.count - 2]),
      "give an absolute URL, or a path with its slash: http://host/v1/orders or /v1/orders")
    for line in header where !line.contains(":") { throw ValidationError("-H is 'Name: value'") }
    guard IPAddress(address) != nil else {
      throw ValidationError("--address is an IP address without a port, such as 192.0.2.1 or 2001:db8::1")
    }
    for text in words + header where text.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
      throw ValidationError("a request's line holds no control characters")
    }
  }

  /// Whether the text is a URL or a path, or what the method takes in place of one (RFC 9112, section 3.2).
  private static func isTarget(_ text: String, of method: String) -> Bool {
    if text.hasPrefix("/") || text == "*" || method == "CONNECT" { return true }
    return ["http://", "https://"].contains { text.lowercased().hasPrefix($0) }
  }

  func run() async throws {
    let file = try ConfigurationFile.load(config ?? words[0], isOffline: true)
    let request = ExplainedRequest(
      method: words[words.count - 2], url: words[words.count - 1], lines: header, body: try content(),
      limits: file.settings.limits.head)
    let explanation = await Explanation(
      of: request, from: address, by: file.settings, response: try backendResponse(file.settings.limits.head))
    print(explanation.text)
    if explanation.isRefused { throw ExitCode.failure }
  }

  private func backendResponse(_ limits: HeadLimits) throws -> ExplainedResponse? {
    guard let response else { return nil }
    let content = try OutcomeStatement.content(of: response, option: "--response")
    guard let read = ExplainedResponse(content, limits: limits) else {
      throw failed(
        "\(response == "-" ? "the standard input" : response) is no HTTP response: it begins with a status "
          + "line such as HTTP/1.1 422, then come fields, an empty line and the body, as curl -i prints them")
    }
    return read
  }

  private func content() throws -> [UInt8] {
    guard let data else { return [] }
    guard data.hasPrefix("@") else { return Array(data.utf8) }
    return Array(try InputFile.require(String(data.dropFirst()), of: "-d"))
  }
}
