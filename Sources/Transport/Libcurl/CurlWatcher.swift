import CCurl
import Glibc
import Synchronization

/// One thread a process that sleeps on the sockets of all event loops, and wakes the loop that has some ready.
///
/// NIO cannot watch a foreign descriptor. Each loop's sockets stand in an epoll set of its own; this thread sleeps on
/// a set of those sets. A set is told of once and stays silent until its loop re-arms it.
public final class CurlWatcher: Sendable {
  /// Names a watched set; 0 is the watcher's own stop.
  typealias Tag = UInt64

  private let set: Int32
  private let stop: Int32
  private let nextTag = Atomic<Tag>(1)
  private let wakers = Mutex<[Tag: @Sendable () -> Void]>([:])
  private let thread = Mutex<pthread_t?>(nil)

  public init() throws(TransportError) {
    set = epoll_create1(Int32(EPOLL_CLOEXEC))
    stop = eventfd(0, Int32(EFD_CLOEXEC))
    guard set >= 0, stop >= 0, semel_epoll_control(set, EPOLL_CTL_ADD, stop, EPOLLIN.rawValue, 0) == 0 else {
      throw TransportError.system("epoll", errno)
    }
    var started = pthread_t()
    let owner = Unmanaged.passRetained(self)
    let code = pthread_create(&started, nil, watcherMain, owner.toOpaque())
    guard code == 0 else {
      owner.release()
      throw TransportError.system("pthread_create", code)
    }
    thread.withLock { $0 = started }
  }

  /// Ends the thread and waits for it. The loops must have taken their sets out before.
  public func shutdown() {
    guard let running = thread.withLock({ $0.take() }) else { return }
    eventfd_write(stop, 1)
    pthread_join(running, nil)
    close(set)
    close(stop)
  }

  /// Begins to watch a set. `wake` is called on the watcher's thread.
  func watch(_ descriptor: Int32, wake: @escaping @Sendable () -> Void) -> Tag {
    let tag = nextTag.wrappingAdd(1, ordering: .relaxed).oldValue
    wakers.withLock { $0[tag] = wake }
    _ = semel_epoll_control(set, EPOLL_CTL_ADD, descriptor, Self.once, tag)
    return tag
  }

  /// Lets the set speak once more.
  func rearm(_ descriptor: Int32, _ tag: Tag) {
    _ = semel_epoll_control(set, EPOLL_CTL_MOD, descriptor, Self.once, tag)
  }

  func unwatch(_ descriptor: Int32, _ tag: Tag) {
    _ = semel_epoll_control(set, EPOLL_CTL_DEL, descriptor, 0, tag)
    wakers.withLock { $0[tag] = nil }
  }

  private static let once = EPOLLIN.rawValue | EPOLLONESHOT.rawValue

  fileprivate func run() {
    let ready = UnsafeMutablePointer<semel_ready>.allocate(capacity: Int(SEMEL_READY_MAXIMUM))
    defer { ready.deallocate() }
    while true {
      let count = semel_epoll_wait(set, ready, -1)
      for index in 0..<Int(max(0, count)) {
        guard ready[index].tag != 0 else { return }
        let wake = wakers.withLock { $0[ready[index].tag] }
        wake?()
      }
    }
  }
}

private func watcherMain(_ owner: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let owner else { return nil }
  let watcher = Unmanaged<CurlWatcher>.fromOpaque(owner).takeRetainedValue()
  watcher.run()
  return nil
}
