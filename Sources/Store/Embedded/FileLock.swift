import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Holds a database file for this one process: by `flock` on a side file, and by a lock on the database itself, since
/// somebody may delete the side file. The kernel lets go of both when the process dies, however it dies. A second
/// opening within the process is refused as well.
///
/// The side file stays: removing it would let two processes lock two files of one name.
final class FileLock: Sendable {
  private struct Descriptors {
    let side: Int32
    /// Must outlive SQLite's own: closing any descriptor of a file drops the process's POSIX locks on it.
    let database: Int32
  }

  /// The identity of the database file that is locked.
  let database: FileIdentity
  /// Whether the side file was there and the database was not: somebody has deleted the database.
  let isDatabaseGone: Bool
  /// `nil` once released.
  private let descriptors: Mutex<Descriptors?>

  /// Locks the database file, which is made where there is none, readable for its owner alone; SQLite gives its log
  /// the same rights.
  init(of path: String) throws(EmbeddedStoreError) {
    let wasThere = FileIdentity(path: path) != nil
    let hadSide = FileIdentity(path: path + ".lock") != nil
    let side = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard side >= 0 else {
      throw errno == ENOENT
        ? .noDirectory(path: path) : .cannotOpen(path: path, reason: "its lock file: " + Self.reason())
    }
    guard flock(side, LOCK_EX | LOCK_NB) == 0 else {
      let error: EmbeddedStoreError =
        errno == EWOULDBLOCK
        ? .inUse(path: path, owner: Self.owner(side))
        : .cannotOpen(path: path, reason: "its lock file: " + Self.reason())
      _ = close(side)
      throw error
    }
    let descriptor: Int32
    do throws(EmbeddedStoreError) {
      descriptor = try Self.lockDatabase(path)
    } catch {
      _ = close(side)
      throw error
    }
    guard let identity = FileIdentity(descriptor: descriptor) else {
      preconditionFailure("FileLock: an open file without an identity")
    }
    database = identity
    isDatabaseGone = hadSide && !wasThere
    descriptors = Mutex(Descriptors(side: side, database: descriptor))
    let text = Array("\(getpid())\n".utf8)
    // Only for the message that a second process shows: a failure to write it is no failure to lock.
    if ftruncate(side, 0) == 0 { _ = pwrite(side, text, text.count, 0) }
  }

  deinit { release() }

  /// Lets go. SQLite must have closed the file.
  func release() {
    descriptors.withLock { descriptors in
      if let descriptors {
        _ = close(descriptors.database)
        // A child that another thread has just forked holds the file, too, until it becomes another program.
        _ = flock(descriptors.side, LOCK_UN)
        _ = close(descriptors.side)
      }
      descriptors = nil
    }
  }

  private static func lockDatabase(_ path: String) throws(EmbeddedStoreError) -> Int32 {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .cannotOpen(path: path, reason: reason()) }
    // A file system without such locks has the side file's alone.
    guard !isLocked(descriptor), errno == EAGAIN || errno == EACCES else { return descriptor }
    _ = close(descriptor)
    throw .inUse(path: path, owner: "another process")
  }

  /// Locks one byte far behind those that SQLite locks (at 1 GiB), so that tools can still read the file. The lock
  /// belongs to the open file, not to the process.
  private static func isLocked(_ descriptor: Int32) -> Bool {
    #if os(Linux)
      var lock = Platform.Lock()
      lock.l_type = Int16(F_WRLCK)
      lock.l_whence = Int16(SEEK_SET)
      lock.l_start = 1 << 62
      lock.l_len = 1
      // F_OFD_SETLK, which the headers hide behind a feature macro.
      let setOpenFileLock: Int32 = 37
      return fcntl(descriptor, setOpenFileLock, &lock) == 0
    #else
      return true
    #endif
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

/// The system's type, whose name a function has too.
private enum Platform {
  #if canImport(Glibc)
    typealias Lock = Glibc.flock
  #elseif canImport(Musl)
    typealias Lock = Musl.flock
  #endif
}
