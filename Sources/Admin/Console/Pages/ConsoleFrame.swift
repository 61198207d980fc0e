import HTTPTypes
import Hummingbird
import NIOCore

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
