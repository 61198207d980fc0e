import CCurl

/// One blocking HTTP request of Semel's own, sent by libcurl: from the command line, or from the thread that exports
/// spans.
///
/// Never use it on an event loop, because it blocks, nor for a client's request, because libcurl sends a request again
/// by itself if a reused connection dies. For Semel's own requests, a second sending does no harm.
public struct HTTPCall: Sendable {
  /// A complete response.
  public struct Response: Sendable {
    public var status: Int
    public var body: [UInt8]
  }

  /// The failure of a call without a complete response, in libcurl's words.
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  /// The maximum size of a response body, in bytes; a larger response is a failure. No response that Semel requests is
  /// as large.
  private static let maxBytes = 64 << 20

  public var method = "GET"
  public var url: String
  /// Header lines without their line ends: `Name: value`.
  public var fields: [String] = []
  /// The request's body; `nil` for none.
  public var body: [UInt8]?
  /// The time-out of the whole call, in milliseconds.
  public var timeoutMilliseconds = 10_000

  public init(url: String) { self.url = url }

  /// Sends the request and waits for its response. Blocks. A response with an error status is no failure.
  public func send() throws(Failure) -> Response {
    let easy = EasyHandle()
    let received = Received(limit: Self.maxBytes)
    easy.set(CURLOPT_NOSIGNAL, true)
    easy.set(CURLOPT_NOPROXY, "*")
    easy.set(CURLOPT_PATH_AS_IS, true)
    easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
    easy.set(CURLOPT_TIMEOUT_MS, timeoutMilliseconds)
    easy.set(CURLOPT_CUSTOMREQUEST, method)
    easy.set(CURLOPT_WRITEFUNCTION, callback: receive)
    easy.set(CURLOPT_WRITEDATA, pointer: Unmanaged.passUnretained(received).toOpaque())
    guard semel_easy_set_string(easy.raw, CURLOPT_URL, url) == CURLE_OK else {
      throw Failure(description: "\(url) is no URL")
    }
    var list: UnsafeMutablePointer<curl_slist>?
    // Without `Expect`, which would cost a round trip.
    for field in fields + ["Expect:"] { list = curl_slist_append(list, field) }
    defer { curl_slist_free_all(list) }
    if let list { easy.setFields(list) }
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
    guard code == CURLE_OK else { throw Failure(description: easy.reason(code)) }
    return Response(status: Int(semel_easy_status(easy.raw)), body: received.bytes)
  }
}

/// The address of an empty body, of which no byte is read.
private nonisolated(unsafe) let emptyBody = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

/// The bytes of a response body, collected as they arrive.
private final class Received {
  private let limit: Int
  private(set) var bytes: [UInt8] = []

  init(limit: Int) { self.limit = limit }

  func take(_ more: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count + more.count <= limit else { return false }
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
