import CCurl
import Glibc

/// The initialisation of libcurl's process-wide state, which happens once, at the first use.
enum CurlEnvironment {
  static let isReady: Bool = {
    // OpenSSL writes without MSG_NOSIGNAL, and with CURLOPT_NOSIGNAL libcurl does not block SIGPIPE itself.
    signal(SIGPIPE, SIG_IGN)
    return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
  }()
}
