import Idempotency
import NIOCore
import Proxy
import Wire

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
