import HTTPTypes
import Hummingbird
import Idempotency
import NIOCore
import Telemetry

enum ConsolePage: String, CaseIterable, Sendable {
  case now, records, record, matches, bulk, routes, live, audit, configuration, login, error

  var title: String {
    switch self {
    case .now: "Now"
    case .records: "Records"
    case .record: "One record"
    case .matches: "Search"
    case .bulk: "Resolve many"
    case .routes: "Routes"
    case .live: "Live"
    case .audit: "Audit"
    case .configuration: "Configuration"
    case .login: "Log in"
    case .error: "Not done"
    }
  }

  /// The pages that the navigation names, with their paths after the root.
  static let navigation: [(page: ConsolePage, path: String)] = [
    (.now, "/"), (.records, "/records"), (.routes, "/routes"), (.live, "/live"), (.audit, "/audit"),
    (.configuration, "/configuration"),
  ]

  /// The page of the navigation that this one belongs to.
  fileprivate var section: ConsolePage {
    switch self {
    case .record, .matches, .bulk: .records
    default: self
    }
  }
}

/// The values that a template shows, by their names.
typealias View = [String: Any]

/// Makes a view. A value that is missing hides its section, and is not looked for in the views around it.
func view(_ values: KeyValuePairs<String, Any?>) -> View {
  Dictionary(uniqueKeysWithValues: values.map { ($0.key, $0.value ?? false) })
}

struct ConsoleFrame {
  private let console: Console
  private let role: AdminAccess.Role?
  private let hasLogin: Bool

  init(_ console: Console, _ context: AdminContext, hasLogin: Bool) {
    self.console = console
    role = context.role
    self.hasLogin = hasLogin
  }

  var mayOperate: Bool { role == .operate }

  func page(
    _ page: ConsolePage, _ content: View, title: String? = nil, refreshes: Bool = false,
    status: HTTPResponse.Status = .ok
  ) -> Response {
    let common = view([
      "root": console.root, "operates": mayOperate, "reads_only": role == .read,
      "has_login": hasLogin && role != nil,
      "node": console.recordAdmin.node, "title": title ?? page.title, "page": page.rawValue,
      "refreshes": refreshes, "inside": role != nil,
      "links": ConsolePage.navigation.map { link in
        view(["path": link.path, "name": link.page.title, "current": link.page == page.section])
      },
    ])
    let main = ConsoleTemplates.render(common.merging(content) { _, own in own }, page.rawValue)
    let text = ConsoleTemplates.render(common.merging(["main": main]) { _, own in own }, "layout")
    return Self.response(text, type: "text/html; charset=utf-8", status: status)
  }

  /// A part of a page, for the script.
  func part(_ template: String, _ content: View) -> String {
    ConsoleTemplates.render(content.merging(["root": console.root]) { own, _ in own }, template)
  }

  func error(_ status: HTTPResponse.Status, _ detail: String) -> Response {
    page(
      .error, view(["detail": detail, "status": status.code, "phrase": status.reasonPhrase]), status: status)
  }

  /// Leads the browser to another page after a form.
  func redirect(to path: String) -> Response {
    Response(status: .seeOther, headers: [.location: console.root + path, .cacheControl: "no-store"])
  }

  /// - Parameter lifetime: The seconds for which a browser may keep the response.
  static func response(
    _ text: String, type: String, status: HTTPResponse.Status = .ok, lifetime: Int? = nil
  ) -> Response {
    var response = Response(
      status: status,
      headers: [.contentType: type, .cacheControl: lifetime.map { "max-age=\($0)" } ?? "no-store"],
      body: .init(byteBuffer: ByteBuffer(string: text)))
    response.headers.protect()
    return response
  }
}

extension HTTPFields {
  /// Adds what keeps a page from loading anything from elsewhere, and other pages from showing it.
  mutating func protect() {
    self[.contentSecurityPolicy] =
      "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    self[.xContentTypeOptions] = "nosniff"
    self[HTTPField.Name("Referrer-Policy")!] = "same-origin"
    self[HTTPField.Name("Cross-Origin-Opener-Policy")!] = "same-origin"
    self[HTTPField.Name("Cross-Origin-Resource-Policy")!] = "same-origin"
    self[HTTPField.Name("X-Frame-Options")!] = "DENY"
  }
}

enum Words {
  static func span(_ span: Milliseconds) -> String { self.span(seconds: span.inSeconds) }

  static func span(seconds: Double) -> String {
    switch seconds {
    case ..<0.001: "\(Int((seconds * 1_000_000).rounded())) µs"
    case ..<1: "\(Int((seconds * 1000).rounded())) ms"
    case ..<120: "\(Int(seconds)) s"
    case ..<7200: "\(Int(seconds / 60)) min"
    case ..<172_800: "\(Int(seconds / 3600)) h"
    default: "\(Int(seconds / 86_400)) d"
    }
  }

  /// A whole number with spaces between its thousands.
  static func number(_ count: Int) -> String {
    let digits = Array("\(abs(count))")
    let parts = digits.indices.map { index in
      let rest = digits.count - index
      return "\(digits[index])" + (rest > 1 && rest % 3 == 1 ? "\u{202F}" : "")
    }
    return (count < 0 ? "−" : "") + parts.joined()
  }

  static func count(_ count: Int, _ one: String, _ many: String) -> String {
    "\(number(count)) \(count == 1 ? one : many)"
  }

  static func short(_ id: String) -> String { id.count > 12 ? "\(id.prefix(10))…" : id }

  static func state(_ state: String) -> String { state.replacing("_", with: " ") }

  static func time(_ text: String) -> String { String(text.dropFirst(11).dropLast()) }

  /// A time as documents have it, to the second and with a space.
  static func date(_ text: String) -> String { String(text.prefix(19)).replacing("T", with: " ") }

  /// A span that a form has: a number of seconds, or one with `s`, `m`, `h` or `d`; `nil` for anything else.
  static func parsed(_ text: String) -> Milliseconds? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    let unit = text.last.flatMap { units[$0] }
    guard let number = Int64(unit == nil ? text : String(text.dropLast())), 0..<100_000_000 ~= number else {
      return nil
    }
    return Milliseconds.seconds(number * (unit ?? 1))
  }
}

extension String {
  /// The text as the value of a query's parameter (RFC 3986, section 2.3).
  var queryValue: String {
    utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
        UInt8(ascii: "~"):
        return String(UnicodeScalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        return "%" + (digits.count < 2 ? "0" : "") + digits
      }
    }.joined()
  }
}

extension RecordDocument {
  var row: View {
    view([
      "id": id, "short_id": Words.short(id), "state": state, "state_name": Words.state(state),
      "route_text": route ?? "–", "cause_text": cause ?? "–", "key_text": keyDigest ?? "–",
      "caller_text": callerDigest ?? "–", "attempt_text": attempt.map { "\($0)" } ?? "–",
      "age": (unknownForSeconds ?? ageSeconds).map(Words.span(seconds:)) ?? "–",
    ])
  }
}

func fact(_ name: String, _ value: String?, code: Bool = false) -> View? {
  value.map { view(["name": name, "value": $0, "code": code]) }
}
