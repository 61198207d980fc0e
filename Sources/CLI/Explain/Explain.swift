import ArgumentParser
import Foundation
import Idempotency
import NIOCore
import Proxy
import Settings
import Wire

struct Explain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
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

/// A request as an operator describes it, which is read by the codec of the proxy.
struct ExplainedRequest {
  let head: Result<RequestHead, Problem>
  let body: ByteBuffer
  /// Whether its host is given. Otherwise it is a request to an address, as where `semel key` has no host.
  let namesHost: Bool

  /// The host of a request without one: an address, which belongs to no record.
  private static let anyAddress = "127.0.0.1"

  /// - Parameter url: A URL, or a path with its query.
  init(method: String, url: String, lines: [String], body: [UInt8], limits: HeadLimits) {
    let (target, authority) = Self.parts(of: url)
    var text = "\(method) \(target) HTTP/1.1\r\n"
    let names = lines.map { $0.prefix { $0 != ":" }.lowercased() }
    namesHost = authority != nil || names.contains("host")
    if !names.contains("host") { text += "Host: \(authority ?? Self.anyAddress)\r\n" }
    if !body.isEmpty, !names.contains("content-length") { text += "Content-Length: \(body.count)\r\n" }
    for line in lines { text += line + "\r\n" }
    var bytes = ByteBuffer(string: text + "\r\n")
    var decoder = RequestDecoder(limits: limits)
    do throws(WireError) {
      guard case .head(let head)? = try decoder.next(&bytes) else { throw .badRequestLine }
      self.head = .success(head)
    } catch {
      self.head = .failure(.unreadable(error))
    }
    self.body = ByteBuffer(bytes: body)
  }

  private static func parts(of url: String) -> (target: String, authority: String?) {
    for scheme in ["http://", "https://"] where url.lowercased().hasPrefix(scheme) {
      let rest = url.dropFirst(scheme.count)
      let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
      let target = rest.dropFirst(authority.count).prefix { $0 != "#" }
      return ((target.hasPrefix("/") ? "" : "/") + target, String(authority))
    }
    return (url, nil)
  }
}

/// A response in a file as `curl -i` prints it: a status line, fields, an empty line and the body.
struct ExplainedResponse {
  let head: MessageHead
  let body: ByteBuffer

  /// Reads a response; `nil` if the text is none. Any version and line end, and interim responses before it, are taken.
  init?(_ content: Data, limits: HeadLimits) {
    var rest = content[...]
    while true {
      guard let end = Self.endOfHead(rest) else { return nil }
      let lines = String(decoding: rest[..<end.head], as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false)
        .map { $0.hasSuffix("\r") ? $0.dropLast() : $0 }
      rest = rest[end.body...]
      guard let head = Self.head(lines, limits) else { return nil }
      guard head.status < 200 else {
        (self.head, body) = (head, ByteBuffer(bytes: rest))
        return
      }
    }
  }

  /// The end of the first head and the begin of what follows its empty line. Without one, the head is all there is.
  private static func endOfHead(_ text: Data) -> (head: Data.Index, body: Data.Index)? {
    guard !text.isEmpty else { return nil }
    let marks = ["\r\n\r\n", "\n\n"].compactMap { text.firstRange(of: Data($0.utf8)) }
    guard let mark = marks.min(by: { $0.lowerBound < $1.lowerBound }) else {
      return (text.endIndex, text.endIndex)
    }
    return (mark.lowerBound, mark.upperBound)
  }

  /// The head without the fields of its body's framing, which may no longer be right.
  private static func head(_ lines: [Substring], _ limits: HeadLimits) -> MessageHead? {
    guard var line = lines.first, line.hasPrefix("HTTP/") else { return nil }
    line = "HTTP/1.1" + line.drop { $0 != " " }
    // HTTP/2 has no reason, and its status line no space behind the status.
    if line.split(separator: " ").count == 2 { line += line.hasSuffix(" ") ? "" : " " }
    let fields = lines.dropFirst().filter { line in
      !line.isEmpty
        && !["content-length", "transfer-encoding"].contains(line.prefix { $0 != ":" }.lowercased())
    }
    var bytes = ByteBuffer(string: ([line] + fields).joined(separator: "\r\n") + "\r\n\r\n")
    var decoder = ResponseDecoder(limits: limits, method: .get, reading: .tolerant)
    guard case .head(let response)? = try? decoder.next(&bytes) else { return nil }
    return response.head
  }
}

/// The conditions of one route that a request does not meet, found with the route's own matching.
struct RouteFit {
  let misfits: [String]

  /// Matches each condition of the route by a table of one route that has this condition alone.
  init(
    of policy: RoutePolicy, _ head: MessageHead, method: ByteBuffer, host: ByteBuffer, path: ByteBuffer,
    _ operation: GraphQLOperation
  ) {
    let fits = { (policy: RoutePolicy) in
      RouteTable([policy]).route(for: head, method: method, host: host, path: path, operation: operation)
        != nil
    }
    guard !fits(policy) else {
      misfits = []
      return
    }
    var found: [String] = []
    let match = policy.match
    if !fits(Self.route(like: policy, RouteMatch(methods: match.methods), isProtected: policy.isProtected)) {
      let listed = match.methods.isEmpty ? "no safe method" : match.methods.joined(separator: ", ")
      found.append("method: it takes \(listed)")
    }
    if let own = match.path, !fits(Self.route(like: policy, RouteMatch(path: own))) {
      found.append("path: it takes \(own.text)" + (policy.spelling == .lenient ? "" : ", \(policy.spelling)"))
    }
    if let own = match.host, !fits(Self.route(like: policy, RouteMatch(host: own))) {
      found.append("host: it takes \(own)")
    }
    for own in match.headers where !fits(Self.route(like: policy, RouteMatch(headers: [own]))) {
      found.append("headers: it wants \(own.name) with its value")
    }
    if let own = match.graphql, !fits(Self.route(like: policy, RouteMatch(graphql: own))) {
      found.append("graphql: it takes mutations, and the body selects none")
    }
    misfits = found.isEmpty ? ["another of its conditions"] : found
  }

  /// A route with one condition. Without protection and a list of methods, a route takes every method.
  private static func route(
    like policy: RoutePolicy, _ match: RouteMatch, isProtected: Bool = false
  ) -> RoutePolicy {
    var policy = policy
    policy.match = match
    if !isProtected { policy.idempotency = .off }
    return policy
  }
}
