import Idempotency
import NIOCore
import Wire

extension MessageHead {
  /// Where a request's method stands.
  var methodRange: Range<Int> {
    if case .request(_, let range, _) = start { range } else { 0..<0 }
  }

  /// A request's method as it is spelt.
  var methodText: String { string(methodRange) }

  func withMethod<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T { withBytes(methodRange, body) }
}

extension RequestTarget {
  /// Path and query as they are forwarded.
  var text: String {
    guard let query else { return String(buffer: path) }
    return String(buffer: path) + "?" + String(buffer: query)
  }
}

extension UpstreamSettings {
  /// What `Host` says where the client said nothing (HTTP/1.0).
  var authority: String {
    switch address {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix: "localhost"
    }
  }
}

extension RouteTable {
  func route(for head: MessageHead, host: ByteBuffer, target: RequestTarget) -> Route? {
    head.withMethod { method in
      host.withUnsafeReadableBytes { host in
        target.withPath { path in route(method: method, host: host, path: path) }
      }
    }
  }
}
