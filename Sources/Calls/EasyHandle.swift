import CCurl
import Glibc

/// The owner of a libcurl easy handle, which it frees once.
struct EasyHandle: ~Copyable {
  let raw: UnsafeMutableRawPointer
  private let errorText: UnsafeMutablePointer<CChar>

  init() {
    guard CurlEnvironment.isReady, let raw = curl_easy_init() else { fatalError("libcurl is out of memory") }
    self.raw = raw
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    set(CURLOPT_ERRORBUFFER, pointer: errorText)
  }

  deinit {
    curl_easy_cleanup(raw)
    errorText.deallocate()
  }

  /// libcurl's text for the last failure.
  func reason(_ code: CURLcode) -> String {
    errorText[0] != 0 ? String(cString: errorText) : String(cString: curl_easy_strerror(code))
  }

  func set(_ option: CURLoption, _ value: Int) { check(semel_easy_set_long(raw, option, value), option) }
  func set(_ option: CURLoption, _ value: Bool) { set(option, value ? 1 : 0) }
  func set(_ option: CURLoption, size: Int) { check(semel_easy_set_size(raw, option, Int64(size)), option) }
  func set(_ option: CURLoption, _ value: String) { check(semel_easy_set_string(raw, option, value), option) }
  func set(_ option: CURLoption, pointer: UnsafeRawPointer?) {
    check(semel_easy_set_pointer(raw, option, pointer), option)
  }
  func set(_ option: CURLoption, list: UnsafeMutablePointer<curl_slist>) {
    check(semel_easy_set_list(raw, option, list), option)
  }
  func set(
    _ option: CURLoption,
    callback: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int
  ) {
    check(semel_easy_set_data_callback(raw, option, callback), option)
  }

  /// Stops the process if libcurl refuses an option: then Semel was built against another version.
  private func check(_ code: CURLcode, _ option: CURLoption) {
    precondition(code == CURLE_OK, "libcurl refused option \(option.rawValue): \(code.rawValue)")
  }
}

/// The initialisation of libcurl's process-wide state, which happens once, at the first use.
enum CurlEnvironment {
  static let isReady: Bool = {
    // OpenSSL writes without MSG_NOSIGNAL, and with CURLOPT_NOSIGNAL libcurl does not block SIGPIPE itself.
    signal(SIGPIPE, SIG_IGN)
    return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
  }()
}
