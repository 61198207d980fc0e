import CCurl
import Glibc

/// libcurl's process-wide state, set up once, at the first use.
enum CurlEnvironment {
  static let isReady: Bool = {
    // OpenSSL writes without MSG_NOSIGNAL, and with CURLOPT_NOSIGNAL libcurl leaves the signal alone.
    signal(SIGPIPE, SIG_IGN)
    return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
  }()
}
