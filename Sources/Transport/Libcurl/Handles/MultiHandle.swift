import CCurl

/// Owns a libcurl multi handle: the connections of one event loop. Freed once, after its last transfer was removed.
struct MultiHandle: ~Copyable {
  private let raw: UnsafeMutableRawPointer

  init?() {
    guard CurlEnvironment.isReady, let raw = curl_multi_init() else { return nil }
    self.raw = raw
  }

  deinit { curl_multi_cleanup(raw) }

  /// Names the functions that hear of sockets and timers; `owner` must outlive the handle.
  func setCallbacks(
    owner: UnsafeMutableRawPointer,
    socket:
      @convention(c) (
        UnsafeMutableRawPointer?, curl_socket_t, Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
      ) -> Int32,
    timer: @convention(c) (UnsafeMutableRawPointer?, Int, UnsafeMutableRawPointer?) -> Int32
  ) {
    let code = semel_multi_set_callbacks(raw, socket, timer, owner)
    precondition(code == CURLM_OK, "libcurl refused its callbacks: \(code.rawValue)")
  }

  /// How many are kept in all.
  func setMaximumConnections(_ count: Int) { semel_multi_set_long(raw, CURLMOPT_MAXCONNECTS, count) }

  func add(_ easy: borrowing EasyHandle) -> CURLMcode { curl_multi_add_handle(raw, easy.raw) }

  /// Takes a transfer out; one that is not finished loses its connection.
  func remove(_ easy: borrowing EasyHandle) { curl_multi_remove_handle(raw, easy.raw) }

  /// Tells libcurl what a socket is ready for.
  func act(on descriptor: Int32, ready: Int32) {
    var running: Int32 = 0
    curl_multi_socket_action(raw, descriptor, ready, &running)
  }

  /// Lets libcurl do what its timers have due, and start what was added.
  func actOnTimers() {
    var running: Int32 = 0
    curl_multi_socket_action(raw, CURL_SOCKET_BAD, 0, &running)
  }

  /// The owner of the next finished transfer, as it was set with `setPrivate`, and how it ended.
  func nextDone() -> (owner: UnsafeMutableRawPointer, code: CURLcode)? {
    var code = CURLE_OK
    guard let easy = semel_multi_next_done(raw, &code), let owner = semel_easy_private(easy) else {
      return nil
    }
    return (owner, code)
  }
}
