import CCurl
import Glibc

// The functions that libcurl calls. Each finds its owner and passes on; none runs a task's code.

private func transfer(_ owner: UnsafeMutableRawPointer?) -> CurlTransfer? {
  owner.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
}

private func upstream(_ owner: UnsafeMutableRawPointer?) -> CurlUpstream? {
  owner.map { Unmanaged<CurlUpstream>.fromOpaque($0).takeUnretainedValue() }
}

/// A line of the answer's head or trailers. Another count than the given one ends the transfer.
func curlBringsLine(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ owner: UnsafeMutableRawPointer?
) -> Int {
  guard let exchange = transfer(owner)?.exchange else { return 0 }
  let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return exchange.bring(line: line) ? line.count : 0
}

/// A piece of the answer's body.
func curlBringsBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ owner: UnsafeMutableRawPointer?
) -> Int {
  guard let exchange = transfer(owner)?.exchange else { return 0 }
  let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return switch exchange.bring(body: piece) {
  case .taken: piece.count
  case .pause: Int(CURL_WRITEFUNC_PAUSE)
  case .refuse: 0
  }
}

/// Room for a piece of a streamed request's body.
func curlFetchesBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ owner: UnsafeMutableRawPointer?
) -> Int {
  guard let exchange = transfer(owner)?.exchange else { return Int(CURL_READFUNC_ABORT) }
  let room = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
  return exchange.fetchBody(into: room) ?? Int(CURL_READFUNC_PAUSE)
}

/// The connection stands and the request is about to be written: before each sending, libcurl's own ones too.
func curlIsAboutToSend(
  _ owner: UnsafeMutableRawPointer?, _ remoteAddress: UnsafeMutablePointer<CChar>?,
  _ localAddress: UnsafeMutablePointer<CChar>?, _ remotePort: Int32, _ localPort: Int32
) -> Int32 {
  guard let exchange = transfer(owner)?.exchange, exchange.maySend() else { return CURL_PREREQFUNC_ABORT }
  return CURL_PREREQFUNC_OK
}

/// libcurl wants to hear of other events of a socket.
func curlWants(
  _ easy: UnsafeMutableRawPointer?, _ socket: curl_socket_t, _ what: Int32, _ owner: UnsafeMutableRawPointer?,
  _ unused: UnsafeMutableRawPointer?
) -> Int32 {
  upstream(owner)?.want(what, of: socket, for: easy.flatMap { transfer(semel_easy_private($0))?.exchange })
  return 0
}

/// libcurl wants to be called after a while: -1 never, 0 at once.
func curlSetsTimer(
  _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ owner: UnsafeMutableRawPointer?
) -> Int32 {
  upstream(owner)?.setTimer(milliseconds)
  return 0
}

func curlOpensSocket(
  _ owner: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard let address = address?.pointee else { return CURL_SOCKET_BAD }
  let type = address.socktype | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
  let descriptor = socket(address.family, type, address.protocol)
  guard descriptor >= 0 else { return CURL_SOCKET_BAD }
  upstream(owner)?.opened(descriptor)
  return descriptor
}

func curlClosesSocket(_ owner: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
  upstream(owner)?.closed(descriptor)
  return close(descriptor)
}
