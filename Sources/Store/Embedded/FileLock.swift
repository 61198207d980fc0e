import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Holds a file for this one process, by `flock` on a side file: the kernel lets go of it when the process
/// dies, however it dies. A second opening within the process is refused as well.
///
/// The side file stays: removing it would let two processes lock two files of one name.
final class FileLock: Sendable {
  /// `nil` once released.
  private let descriptor: Mutex<Int32?>

  init(of path: String) throws(EmbeddedStoreError) {
    let descriptor = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw errno == ENOENT
        ? .noDirectory(path: path) : .cannotOpen(path: path, reason: "its lock file: " + Self.reason())
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let error: EmbeddedStoreError =
        errno == EWOULDBLOCK
        ? .inUse(path: path, owner: Self.owner(descriptor))
        : .cannotOpen(path: path, reason: "its lock file: " + Self.reason())
      _ = close(descriptor)
      throw error
    }
    self.descriptor = Mutex(descriptor)
    let text = Array("\(getpid())\n".utf8)
    // Only for the message that a second process shows: a failure to write it is no failure to lock.
    if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
  }

  deinit { release() }

  func release() {
    descriptor.withLock { descriptor in
      if let descriptor {
        // A child that another thread has just forked holds the file, too, until it becomes another program.
        _ = flock(descriptor, LOCK_UN)
        _ = close(descriptor)
      }
      descriptor = nil
    }
  }

  private static func owner(_ descriptor: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    let digits = bytes.prefix(max(count, 0)).prefix { $0 >= 0x30 && $0 <= 0x39 }
    guard !digits.isEmpty else { return "another process" }
    return "process " + String(decoding: digits, as: UTF8.self)
  }

  private static func reason() -> String { String(cString: strerror(errno)) }
}
