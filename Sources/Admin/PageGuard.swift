import HTTPTypes
import Wire

/// The rule by which the operator's listener tells its own clients from the web pages that an operator happens to have
/// open: a browser reaches loopback and private networks for any page.
///
/// A name may have been pointed here by whoever owns it (DNS rebinding), so it has to be configured. An address is the
/// listener's own where it is loopback, is configured, or is the one at which the connection arrived: a kubelet and
/// Prometheus name the pod so.
struct PageGuard: Sendable {
  enum Verdict: Equatable {
    case accept
    /// The `Host` is neither loopback, nor configured, nor where the request arrived.
    case foreignHost
    /// The `Origin` is another than the listener's own, or the browser says that the request comes from another site.
    case foreignPage
    /// A change without `Content-Type: application/json`, which a page could send without asking first.
    case changeWithoutJSON
  }

  private static let loopback = [
    AddressBlock(IPAddress("127.0.0.0")!, prefix: 104)!, AddressBlock(IPAddress("::1")!, prefix: 128)!,
  ]

  /// In lower case.
  private let names: Set<String>
  private let addresses: Set<IPAddress>

  /// - Parameter hosts: names and addresses besides loopback by which the listener is reached, in any letter case.
  init(hosts: [String]) {
    names = Set(hosts.map { $0.lowercased() } + ["localhost"])
    addresses = Set(hosts.compactMap { IPAddress($0) })
  }

  /// - Parameter local: the address at which the connection arrived; `nil` where it is not known.
  func verdict(on request: HTTPRequest, at local: IPAddress?) -> Verdict {
    // Every browser names a host; a probe of HTTP/1.0 may not.
    if let authority = request.authority, !isOwn(authority, at: local) { return .foreignHost }
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

  /// Nothing, or a colon and digits.
  private func isPort(_ rest: Substring) -> Bool {
    rest.isEmpty || rest.first == ":" && rest.dropFirst().utf8.allSatisfy(ASCII.isDigit)
  }
}
