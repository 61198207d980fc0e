import HTTPTypes
import Hummingbird
import Wire

/// Distinguishes the admin listener's clients from web pages that an operator has open, for which a browser reaches
/// loopback and private networks. A host name may point here by its owner's will (DNS rebinding), so it must be
/// configured. An address is accepted if it is loopback, configured, or where the connection arrived, as kubelet and
/// Prometheus address a pod.
struct PageGuard: Sendable {
  enum Verdict: Equatable {
    case accept
    /// The `Host` is given twice, or neither loopback, nor configured, nor where the request arrived.
    case foreignHost
    /// The `Origin` is not the listener's own, or the browser states that the request comes from another site.
    case foreignPage
    /// A change without `Content-Type: application/json`, which a page may send without a preflight; no bare DELETE.
    case changeWithoutJSON
    /// A form without a browser's word that it comes from a page of the console.
    case formWithoutOrigin
  }

  private static let loopback = [
    AddressBlock(IPAddress("127.0.0.0")!, prefix: 104)!, AddressBlock(IPAddress("::1")!, prefix: 128)!,
  ]

  /// The accepted names, in lower case.
  private let names: Set<String>
  private let addresses: Set<IPAddress>
  private let console: [String]

  /// - Parameter hosts: The names and addresses by which it is reached, besides loopback, in any letter case.
  init(hosts: [String], console: [String] = []) {
    self.console = console
    names = Set(hosts.map { $0.lowercased() } + ["localhost"])
    addresses = Set(hosts.compactMap { IPAddress($0) })
  }

  /// - Parameter local: The address at which the connection arrived; `nil` if it is not known.
  func verdict(on request: HTTPRequest, at local: IPAddress?) -> Verdict {
    // Every browser sends a host; a probe by HTTP/1.0 may not.
    if let authority = request.authority, !isOwn(authority, at: local) { return .foreignHost }
    guard request.hasOneHost else { return .foreignHost }
    let path = request.path ?? ""
    let isOfConsole = console.contains { path == $0 || path.hasPrefix($0 + "/") }
    let sites = request.values(of: "sec-fetch-site")
    let isOwnPage = isOfConsole && !sites.isEmpty && sites.allSatisfy { $0 == "same-origin" }
    if let origin = request.headerFields[.origin]?.lowercased() {
      // A page by https is another origin, but for one of the console by a proxy that speaks TLS, by the browser's
      // word.
      guard let authority = request.authority?.lowercased(),
        origin == "http://\(authority)" || isOwnPage && origin == "https://\(authority)"
      else { return .foreignPage }
    }
    guard
      sites.allSatisfy({ ["same-origin", "none"].contains($0) }) || isOfConsole && request.isNavigation
    else { return .foreignPage }
    guard ![.get, .head, .options].contains(request.method) else { return .accept }
    if request.isBareDelete { return .accept }
    let type = request.headerFields[.contentType]?.split(separator: ";").first ?? ""
    if isOfConsole, type.lowercased().trimmingSpaces == "application/x-www-form-urlencoded" {
      return isOwnPage || sites.isEmpty && request.headerFields[.origin] != nil ? .accept : .formWithoutOrigin
    }
    let isJSON = type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/json"
    return isJSON ? .accept : .changeWithoutJSON
  }

  private func isOwn(_ authority: String, at local: IPAddress?) -> Bool {
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]"), isPort(authority[end...].dropFirst()) else {
        return false
      }
      return IPAddress(String(authority[..<end].dropFirst())).map { isOwn($0, at: local) } ?? false
    }
    let host = authority.prefix { $0 != ":" }
    guard isPort(authority[host.endIndex...]) else { return false }
    if let address = IPAddress(String(host)) { return isOwn(address, at: local) }
    let name = host.hasSuffix(".") ? host.dropLast() : host
    return names.contains(name.lowercased())
  }

  private func isOwn(_ address: IPAddress, at local: IPAddress?) -> Bool {
    address == local || addresses.contains(address) || Self.loopback.contains { $0.contains(address) }
  }

  private func isPort(_ rest: Substring) -> Bool {
    rest.isEmpty || rest.first == ":" && rest.dropFirst().utf8.allSatisfy(ASCII.isDigit)
  }
}

extension HTTPRequest {
  /// Whether `Host` was given once at most. The first one has become `authority`; NIO leaves the others as fields.
  fileprivate var hasOneHost: Bool { !headerFields.contains { $0.name.canonicalName == "host" } }

  /// The values of a field in lower case, one for each of its lines. Its name is in lower case, too.
  fileprivate func values(of name: String) -> [String] {
    headerFields.filter { $0.name.canonicalName == name }.map { $0.value.lowercased() }
  }

  /// Whether a browser opens a page of its own, as for a link in another page, which can neither read nor frame it.
  fileprivate var isNavigation: Bool {
    [.get, .head].contains(method) && values(of: "sec-fetch-mode") == ["navigate"]
      && values(of: "sec-fetch-dest") == ["document"]
  }

  /// Whether this is a DELETE that states neither a body nor a type.
  fileprivate var isBareDelete: Bool {
    method == .delete && headerFields[.contentType] == nil && headerFields[.transferEncoding] == nil
      && ["0", nil].contains(headerFields[.contentLength])
  }
}

/// Refuses requests that a web page of another origin has caused, before anything else is checked.
struct PageGuardMiddleware: RouterMiddleware {
  let pages: PageGuard

  @concurrent
  func handle(
    _ request: Request, context: AdminContext,
    next: @concurrent (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    switch pages.verdict(on: request.head, at: context.local) {
    case .accept: return try await next(request, context)
    case .foreignHost:
      throw AdminError(
        .forbidden, "this Host is not the listener's: reach it by its own address, or add it to admin.hosts")
    case .foreignPage:
      throw AdminError(.forbidden, "requests that a web page of another origin causes are refused")
    case .formWithoutOrigin:
      throw AdminError(
        .forbidden, "a form is taken from a page of the console alone: use the API, /v1/openapi.json")
    case .changeWithoutJSON:
      throw AdminError(.unsupportedMediaType, "send a change with Content-Type: application/json")
    }
  }
}
