import CCurl
import Glibc

/// One blocking HTTP request of Semel's own, sent by libcurl.
///
/// Never use it on an event loop, because it blocks, nor for a client's request, because libcurl sends a request again
/// by itself if a reused connection dies. For Semel's own requests, a second sending does no harm.
public struct HTTPCall: Sendable {
  /// A complete response.
  public struct Response: Sendable {
    public var status: Int
    public var body: [UInt8]
    /// The status line and the field lines as they came, with the empty line; over HTTP/2 as in HTTP/1.1.
    public var head: [UInt8]
    /// Whether the body is all of it. Otherwise it is larger than `maxBytes`.
    public var isWhole = true
  }

  /// The failure of a call without a complete response, in libcurl's words, but for a response that is too large.
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  public var method = "GET"
  public var url: String
  /// Header lines without their line ends: `Name: value`.
  public var fields: [String] = []
  /// The request's body; `nil` for none.
  public var body: [UInt8]?
  /// The time-out of the whole call, in milliseconds.
  public var timeoutMilliseconds = 10_000
  /// The maximum size of a response body, in bytes; a larger response is a failure unless `keepsPart` is true.
  public var maxBytes = 64 << 20
  /// Whether a response that is larger than `maxBytes` is returned with a part of its body.
  public var keepsPart = false
  /// The path of the Unix socket to connect to; `nil` for the host of the URL.
  public var unixSocket: String?
  /// The server to connect to in place of that of the URL, as `CURLOPT_CONNECT_TO` takes it; `nil` for that of the URL.
  public var connectTo: String?
  /// Whether HTTP/2 is spoken from the first byte on.
  public var isHTTP2 = false
  /// The PEM files of the server's authorities, in place of the system's, and of the client's certificate with its key.
  public var authorities: String?
  public var certificate: String?
  public var key: String?

  public init(url: String) { self.url = url }

  /// Sends the request and waits for its response. Blocks. A response with an error status is no failure.
  public func send() throws(Failure) -> Response {
    let easy = EasyHandle()
    let received = Received(limit: maxBytes)
    let servers = connectTo.flatMap { curl_slist_append(nil, $0) }
    defer { curl_slist_free_all(servers) }
    if let servers { easy.set(CURLOPT_CONNECT_TO, list: servers) }
    setOptions(of: easy)
    easy.set(CURLOPT_WRITEFUNCTION, callback: receive)
    easy.set(CURLOPT_WRITEDATA, pointer: Unmanaged.passUnretained(received).toOpaque())
    easy.set(CURLOPT_HEADERFUNCTION, callback: receiveLine)
    easy.set(CURLOPT_HEADERDATA, pointer: Unmanaged.passUnretained(received).toOpaque())
    guard semel_easy_set_string(easy.raw, CURLOPT_URL, url) == CURLE_OK else {
      // It may hold a password, and failures are logged.
      throw Failure(description: "libcurl does not take the URL")
    }
    var list: UnsafeMutablePointer<curl_slist>?
    // Without `Expect`, which would cost a round trip.
    for field in fields + ["Expect:"] { list = curl_slist_append(list, field) }
    defer { curl_slist_free_all(list) }
    if let list { easy.set(CURLOPT_HTTPHEADER, list: list) }
    let code = withExtendedLifetime(received) {
      (body ?? []).withUnsafeBytes { bytes in
        if body != nil {
          easy.set(CURLOPT_POSTFIELDSIZE_LARGE, size: bytes.count)
          // An empty body is a body, too: with a null pointer libcurl would look for another source.
          easy.set(CURLOPT_POSTFIELDS, pointer: bytes.baseAddress ?? UnsafeRawPointer(emptyBody))
        }
        return curl_easy_perform(easy.raw)
      }
    }
    guard code == CURLE_OK || keepsPart && received.isFull else {
      // To libcurl this is a write that failed.
      throw Failure(
        description: received.isFull ? "the response is larger than \(maxBytes) bytes" : easy.reason(code))
    }
    return Self.response(of: easy, received)
  }

  private static func response(of easy: borrowing EasyHandle, _ received: Received) -> Response {
    Response(
      status: Int(semel_easy_status(easy.raw)),
      body: received.bytes, head: received.head, isWhole: !received.isFull)
  }

  private func setOptions(of easy: borrowing EasyHandle) {
    setPeer(of: easy)
    easy.set(CURLOPT_NOSIGNAL, true)
    easy.set(CURLOPT_NOPROXY, "*")
    easy.set(CURLOPT_PATH_AS_IS, true)
    easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
    easy.set(CURLOPT_TIMEOUT_MS, timeoutMilliseconds)
    easy.set(CURLOPT_CUSTOMREQUEST, method)
  }

  private func setPeer(of easy: borrowing EasyHandle) {
    if let unixSocket { easy.set(CURLOPT_UNIX_SOCKET_PATH, unixSocket) }
    if isHTTP2 { easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)) }
    if let authorities {
      easy.set(CURLOPT_CAINFO, authorities)
      // The folder of the system's authorities, which many builds of libcurl have by default, would count besides.
      easy.set(CURLOPT_CAPATH, pointer: nil)
    }
    if let certificate { easy.set(CURLOPT_SSLCERT, certificate) }
    if let key { easy.set(CURLOPT_SSLKEY, key) }
  }
}

/// The address of an empty body, of which no byte is read.
private nonisolated(unsafe) let emptyBody = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

/// The bytes of a response, collected as they arrive.
private final class Received {
  private let limit: Int
  private(set) var bytes: [UInt8] = []
  /// Whether more bytes came than the limit allows.
  private(set) var isFull = false

  init(limit: Int) { self.limit = limit }

  /// The lines of the last head, whole once it ends with an empty one. Trailers come after that, and are left out.
  private(set) var head: [UInt8] = []
  private var hasHead = false

  func take(line: UnsafeRawBufferPointer) {
    if hasHead {
      guard line.starts(with: "HTTP/".utf8) else { return }
      // The one before was that of an interim response.
      (head, hasHead) = ([], false)
    }
    head.append(contentsOf: line)
    hasHead = line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8)
  }

  func take(_ more: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count + more.count <= limit else {
      isFull = true
      return false
    }
    bytes.append(contentsOf: more)
    return true
  }
}

private func receive(
  _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ owner: UnsafeMutableRawPointer?
) -> Int {
  guard let owner else { return 0 }
  let received = Unmanaged<Received>.fromOpaque(owner).takeUnretainedValue()
  let bytes = UnsafeRawBufferPointer(start: data, count: size * count)
  return received.take(bytes) ? bytes.count : 0
}

private func receiveLine(
  _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ owner: UnsafeMutableRawPointer?
) -> Int {
  guard let owner else { return 0 }
  let received = Unmanaged<Received>.fromOpaque(owner).takeUnretainedValue()
  received.take(line: UnsafeRawBufferPointer(start: data, count: size * count))
  return size * count
}

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
