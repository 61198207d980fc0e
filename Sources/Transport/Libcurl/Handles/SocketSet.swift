import CCurl
import Glibc

/// The sockets of one event loop's transfers, in an epoll set of their own.
///
/// libcurl takes its interest in a socket back at the end of each request and takes it up again with the next one.
/// A kept connection's registration is left standing in between, which saves two system calls a request.
struct SocketSet: ~Copyable {
  private struct Entry {
    /// What the kernel was told, 0 where it knows nothing of the socket.
    var registered: UInt32 = 0
    /// What libcurl wants to hear of now.
    var wanted: UInt32 = 0
    /// Opened through us: we hear of its end, so its registration cannot go stale.
    var isTracked = false
  }

  let descriptor: Int32
  private var entries: [Entry] = []
  private let ready: UnsafeMutablePointer<semel_ready>

  init?() {
    descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard descriptor >= 0 else { return nil }
    ready = .allocate(capacity: Int(SEMEL_READY_MAXIMUM))
    ready.initialize(repeating: semel_ready(), count: Int(SEMEL_READY_MAXIMUM))
  }

  deinit {
    close(descriptor)
    ready.deallocate()
  }

  /// A socket was opened: its number may have meant another one before.
  mutating func opened(_ socket: Int32) {
    grow(to: socket)
    entries[Int(socket)] = Entry(isTracked: true)
  }

  /// A socket is about to be closed, which takes it out of the kernel's set.
  mutating func closed(_ socket: Int32) {
    grow(to: socket)
    entries[Int(socket)] = Entry()
  }

  /// libcurl wants to hear of these bits (`CURL_POLL_…`), or of nothing any more.
  mutating func want(_ what: Int32, of socket: Int32) {
    grow(to: socket)
    var wanted: UInt32 = 0
    if what == CURL_POLL_IN || what == CURL_POLL_INOUT { wanted |= EPOLLIN.rawValue }
    if what == CURL_POLL_OUT || what == CURL_POLL_INOUT { wanted |= EPOLLOUT.rawValue }
    entries[Int(socket)].wanted = wanted
    let entry = entries[Int(socket)]
    if wanted == 0, entry.isTracked, entry.registered == EPOLLIN.rawValue { return }
    register(wanted, of: socket)
  }

  /// Asks what is ready now, without waiting.
  func poll() -> Int { Int(max(0, semel_epoll_wait(descriptor, ready, 0))) }

  /// The socket of one ready event and what libcurl is to do with it; `nil` where it wants nothing of it.
  ///
  /// Reading comes before writing, alone: an answer that lies ready is taken before a write to a connection that
  /// the backend has closed can fail and bury it. Errors and hang-ups are found out by reading.
  mutating func event(at index: Int) -> (socket: Int32, action: Int32)? {
    let socket = Int32(truncatingIfNeeded: ready[index].tag)
    let events = ready[index].events
    let wanted = entries[Int(socket)].wanted
    let isBroken = events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
    if wanted & EPOLLIN.rawValue != 0, isBroken || events & EPOLLIN.rawValue != 0 {
      return (socket, CURL_CSELECT_IN)
    }
    if wanted & EPOLLOUT.rawValue != 0, isBroken || events & EPOLLOUT.rawValue != 0 {
      return (socket, CURL_CSELECT_OUT)
    }
    // A kept connection that the backend closed, mostly: heard of once.
    register(wanted, of: socket)
    return nil
  }

  private mutating func register(_ events: UInt32, of socket: Int32) {
    let before = entries[Int(socket)].registered
    guard events != before else { return }
    entries[Int(socket)].registered = events
    let tag = UInt64(socket)
    guard events != 0 else {
      _ = semel_epoll_control(descriptor, EPOLL_CTL_DEL, socket, 0, tag)
      return
    }
    let operation = before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
    guard semel_epoll_control(descriptor, operation, socket, events, tag) != 0 else { return }
    let other = operation == EPOLL_CTL_ADD ? EPOLL_CTL_MOD : EPOLL_CTL_ADD
    _ = semel_epoll_control(descriptor, other, socket, events, tag)
  }

  private mutating func grow(to socket: Int32) {
    while entries.count <= Int(socket) { entries.append(Entry()) }
  }
}
