import CCurl
import Idempotency
import NIOCore

/// One easy handle of an upstream with its options and memory, used for one request after the other.
///
/// Options that never change are set once, the others only where they differ from the last request's.
final class CurlTransfer {
  /// How libcurl is told of the body; it decides what libcurl does besides writing the method.
  private enum Mode: Equatable { case none, head, whole, streamed }

  let easy: EasyHandle
  /// What the transfer runs for, while it runs.
  var exchange: CurlExchange?

  private let url: CurlURL
  private var connectTarget: ConnectTarget?
  private var fields = FieldList()
  private var mode: Mode?
  private var method = ""
  private var target = ""
  /// Keeps a whole body's bytes in place while libcurl points into them.
  private var body: HeldBytes?

  init(for settings: UpstreamSettings, of upstream: UnsafeMutableRawPointer) {
    easy = EasyHandle()
    url = CurlURL(settings)
    setConstants(upstream: upstream)
    set(settings)
  }

  /// Lays out a request. Everything it points to is kept until `finish`.
  func prepare(_ request: UpstreamRequest) {
    easy.forgetReason()
    fields.fill(request.fields)
    if request.target != target {
      target = request.target
      easy.set(CURLOPT_REQUEST_TARGET, target)
    }
    if request.method != method {
      method = request.method
      easy.set(CURLOPT_CUSTOMREQUEST, method)
    }
    prepare(request.body)
  }

  /// The transfer was taken out of the multi handle.
  func finish() {
    exchange = nil
    body = nil
  }

  private func prepare(_ body: RequestBody) {
    switch body {
    case .none where method == "HEAD": enter(.head)
    case .none: enter(.none)
    case .whole(let bytes):
      let held = HeldBytes(bytes)
      enter(.whole)
      easy.set(CURLOPT_POSTFIELDS, pointer: held.start)
      easy.set(CURLOPT_POSTFIELDSIZE_LARGE, size: held.count)
      self.body = held
    case .streamed(_, let length):
      enter(.streamed)
      easy.set(CURLOPT_INFILESIZE_LARGE, size: length ?? -1)
    }
  }

  private func enter(_ new: Mode) {
    guard mode != new else { return }
    mode = new
    switch new {
    case .none: easy.set(CURLOPT_HTTPGET, true)
    case .head: easy.set(CURLOPT_NOBODY, true)
    case .whole: easy.set(CURLOPT_POST, true)
    case .streamed: easy.set(CURLOPT_UPLOAD, true)
    }
  }
}

extension CurlTransfer {
  private func setConstants(upstream: UnsafeMutableRawPointer) {
    let own = Unmanaged.passUnretained(self).toOpaque()
    easy.set(CURLOPT_PRIVATE, pointer: own)
    easy.setFields(fields.first)
    easy.set(CURLOPT_HEADERFUNCTION, callback: curlBringsLine)
    easy.set(CURLOPT_HEADERDATA, pointer: own)
    easy.set(CURLOPT_WRITEFUNCTION, callback: curlBringsBody)
    easy.set(CURLOPT_WRITEDATA, pointer: own)
    easy.set(CURLOPT_READFUNCTION, callback: curlFetchesBody)
    easy.set(CURLOPT_READDATA, pointer: own)
    semel_easy_set_prereq(easy.raw, curlIsAboutToSend)
    easy.set(CURLOPT_PREREQDATA, pointer: own)
    // A connection outlives its transfer, so its sockets report to the upstream.
    semel_easy_set_open_socket(easy.raw, curlOpensSocket)
    easy.set(CURLOPT_OPENSOCKETDATA, pointer: upstream)
    semel_easy_set_close_socket(easy.raw, curlClosesSocket)
    easy.set(CURLOPT_CLOSESOCKETDATA, pointer: upstream)

    easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
    easy.set(CURLOPT_HTTP09_ALLOWED, false)
    easy.set(CURLOPT_PATH_AS_IS, true)
    easy.set(CURLOPT_FOLLOWLOCATION, false)
    // Neither a proxy nor exceptions from it are looked for in the environment.
    easy.set(CURLOPT_PROXY, "")
    easy.set(CURLOPT_NOPROXY, "*")
    easy.set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
    easy.set(CURLOPT_NOSIGNAL, true)
    easy.set(CURLOPT_NOPROGRESS, true)
    easy.set(CURLOPT_TCP_NODELAY, true)
    // A backend that has moved is found again soon. Not zero: the addresses of one connect are tried from the cache.
    easy.set(CURLOPT_DNS_CACHE_TIMEOUT, 1)
    easy.set(CURLOPT_HTTP_CONTENT_DECODING, false)
    // Else removing a transfer that still resolves a name waits for the resolver's thread, on the loop.
    easy.set(CURLOPT_QUICK_EXIT, true)
  }

  private func set(_ settings: UpstreamSettings) {
    easy.set(CURLOPT_CURLU, pointer: UnsafeRawPointer(url.raw))
    if case .unix(let path) = settings.address { easy.set(CURLOPT_UNIX_SOCKET_PATH, path) }
    easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    if let tls = settings.tls { set(tls, settings.address) }
    easy.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(settings.connectTimeout.count)))
    // libcurl counts whole seconds, rounded down, and keeps a connection of just that age.
    let seconds = Int(settings.idleTimeout.count / 1000)
    easy.set(CURLOPT_MAXAGE_CONN, max(0, seconds - 1))
    easy.set(CURLOPT_FORBID_REUSE, seconds == 0)
    easy.set(CURLOPT_FRESH_CONNECT, seconds == 0)
  }

  private func set(_ tls: UpstreamSettings.TLS, _ address: UpstreamSettings.Address) {
    easy.set(CURLOPT_SSL_VERIFYPEER, true)
    easy.set(CURLOPT_SSL_VERIFYHOST, 2)
    easy.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    if let ca = tls.ca {
      easy.set(CURLOPT_CAINFO, ca)
      // The system's own directory of authorities would be looked through besides.
      easy.set(CURLOPT_CAPATH, pointer: nil)
    }
    if let certificate = tls.certificate, let key = tls.key {
      easy.set(CURLOPT_SSLCERT, certificate)
      easy.set(CURLOPT_SSLKEY, key)
    }
    // A changed authority is heeded within ten minutes; libcurl's own span is a day.
    easy.set(CURLOPT_CA_CACHE_TIMEOUT, 600)
    // The URL names the server as it is verified.
    if tls.serverName != nil, case .tcp(let host, let port) = address {
      let target = ConnectTarget(host: CurlURL.literal(host), port: port)
      easy.set(CURLOPT_CONNECT_TO, pointer: target.list)
      connectTarget = consume target
    }
  }
}
