import HTTPTypes
import Wire

/// The rule by which the operator's listener tells its own clients from the web pages that an operator happens to have
/// open: a browser reaches loopback and private networks for any page.
///
/// An address as the host is always the listener's own. A name may have been pointed here by whoever owns it (DNS
/// rebinding), so it has to be configured.
struct PageGuard: Sendable {
  enum Verdict: Equatable {
    case accept
    /// The `Host` is a name that is neither loopback nor configured.
    case foreignHost
    /// The `Origin` is another than the listener's own, or the browser says that the request comes from another site.
    case foreignPage
    /// A change without `Content-Type: application/json`, which a page could send without asking first.
    case changeWithoutJSON
  }

  /// In lower case.
  private let hosts: Set<String>

  /// - Parameter hosts: names besides `localhost` by which the listener is reached, in any letter case.
  init(hosts: [String]) { self.hosts = Set(hosts.map { $0.lowercased() } + ["localhost"]) }

  func verdict(on request: HTTPRequest) -> Verdict {
    // Every browser names a host; a probe of HTTP/1.0 may not.
    if let authority = request.authority, !isOwn(authority) { return .foreignHost }
    if let origin = request.headerFields[.origin] {
      guard let authority = request.authority?.lowercased(),
        ["http://\(authority)", "https://\(authority)"].contains(origin.lowercased())
      else { return .foreignPage }
    }
    let sites = request.headerFields.filter { $0.name.canonicalName == "sec-fetch-site" }
    guard sites.allSatisfy({ ["same-origin", "none"].contains($0.value.lowercased()) }) else {
      return .foreignPage
    }
    guard ![.get, .head, .options].contains(request.method) else { return .accept }
    let type = request.headerFields[.contentType]?.split(separator: ";").first ?? ""
    let isJSON = type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/json"
    return isJSON ? .accept : .changeWithoutJSON
  }

  private func isOwn(_ authority: String) -> Bool {
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]"), isPort(authority[end...].dropFirst()) else {
        return false
      }
      return IPAddress(String(authority[..<end].dropFirst())) != nil
    }
    let host = authority.prefix { $0 != ":" }
    guard isPort(authority[host.endIndex...]) else { return false }
    if IPAddress(String(host)) != nil { return true }
    let name = host.hasSuffix(".") ? host.dropLast() : host
    return hosts.contains(name.lowercased())
  }

  /// Nothing, or a colon and digits.
  private func isPort(_ rest: Substring) -> Bool {
    rest.isEmpty || rest.first == ":" && rest.dropFirst().utf8.allSatisfy(ASCII.isDigit)
  }
}
