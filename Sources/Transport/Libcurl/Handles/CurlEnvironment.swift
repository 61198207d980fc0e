import CCurl
import Glibc

/// libcurl's process-wide state, set up once, at the first use.
enum CurlEnvironment {
  static let isReady: Bool = {
    // OpenSSL writes without MSG_NOSIGNAL, and with CURLOPT_NOSIGNAL libcurl leaves the signal alone.
    signal(SIGPIPE, SIG_IGN)
    return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
  }()

  /// Whether a connection of HTTP/2 without TLS takes a second request. Before 8.0 libcurl switches it to HTTP/2 once more
  /// then, and fails.
  static let keepsPriorKnowledge = semel_curl_version() >= 0x08_00_00
}
