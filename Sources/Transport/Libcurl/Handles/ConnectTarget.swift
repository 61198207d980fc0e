import CCurl
import Glibc

/// Where libcurl connects to instead of its URL's host, in the form it takes that: a list of one.
struct ConnectTarget: ~Copyable {
  private let node: UnsafeMutablePointer<curl_slist>

  /// - Parameters:
  ///   - host: a name or an address, one of IPv6 in brackets.
  init(host: String, port: Int) {
    node = .allocate(capacity: 1)
    node.initialize(to: curl_slist(data: strdup("::\(host):\(port)"), next: nil))
  }

  deinit {
    free(node.pointee.data)
    node.deallocate()
  }

  var list: UnsafeMutablePointer<curl_slist> { node }
}
