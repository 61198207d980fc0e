import Glibc
import Platform
import Synchronization
import Wire

/// The exclusive lock of this process on a database file: a `flock` on a side file, and a lock on the database itself,
/// because the side file may get deleted. The kernel releases both when the process ends.
///
/// The side file is never removed: two processes could lock two files of one name. Its content (`LockNote`) plays no
/// part in the lock.
final class FileLock: Sendable {
  private struct Descriptors {
    let side: Int32
    /// Must outlive SQLite's own descriptors: closing any descriptor of a file drops the process's POSIX locks on it.
    let database: Int32
  }

  let database: FileStatus.Identity
  /// Whether the side file existed and the database did not, or was empty: the database was deleted.
  let isDatabaseGone: Bool
  /// The content of the side file when it was locked. That of a database that is gone names a start at least.
  let found: LockNote
  private let held: Mutex<Held>

  private struct Held {
    var descriptors: Descriptors?
    var note: LockNote

    mutating func write(_ note: LockNote) {
      guard note != self.note, let descriptors else { return }
      // A late note names an earlier point, which is no loss. A generation that is not noted is logged anew.
      let isSynced = note.progress?.generation != self.note.progress?.generation
      FileLock.write(note, to: descriptors.side, isSynced: isSynced)
      self.note = note
    }
  }

  /// Locks the database file, or creates it, readable by its owner only; SQLite gives its log the same permissions.
  ///
  /// - Parameter refusesLoss: Whether a deleted database is an error.
  init(of path: String, refusesLoss: Bool = false) throws(EmbeddedStoreError) {
    if let kind = FileStatus(path: path)?.kind, kind != .regular, kind != .folder {
      throw .cannotOpen(path: path, reason: "it is no regular file")
    }
    let wasThere = FilePresence.length(of: path) > 0
    let hadSide = FileStatus(path: path + ".lock") != nil
    let side = try Self.lockSide(path)
    var found = hadSide || wasThere ? Self.note(in: side) : LockNote.new
    isDatabaseGone = hadSide && !wasThere && found != .new
    if isDatabaseGone {
      var progress = found.progress ?? FileProgress()
      progress.start = max(progress.start, 1)
      found = .reached(progress)
    }
    self.found = found
    let descriptor: Int32
    do throws(EmbeddedStoreError) {
      if refusesLoss, isDatabaseGone { throw .loss(path: path, .gone) }
      descriptor = try Self.lockDatabase(path)
    } catch {
      Self.unlockSide(side)
      throw error
    }
    guard let identity = FileStatus(descriptor: descriptor)?.identity else {
      invariantBroken("an open file without an identity")
    }
    database = identity
    held = Mutex(Held(descriptors: Descriptors(side: side, database: descriptor), note: found))
    // The note of a database that is gone stays until its successor is whole: a crash in between hides nothing.
    Self.write(found, to: side, isSynced: false)
  }

  func keep(_ progress: FileProgress) { held.withLock { $0.write(.reached(progress)) } }

  /// Notes the time of a change that is on the disk, in milliseconds since 1970. A power cut may lose the note.
  func keep(latest: Int64) {
    held.withLock { held in
      guard var progress = held.note.progress else { invariantBroken("a change before the start was noted") }
      progress.latest = latest
      held.write(.reached(progress))
    }
  }

  private static func note(in side: Int32) -> LockNote {
    var bytes = [UInt8](repeating: 0, count: LockNote.maxLength)
    let count = pread(side, &bytes, bytes.count, 0)
    return LockNote(String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self))
  }

  /// Writes over the side file's content: a crash leaves one or the other. A failure affects neither lock nor start.
  private static func write(_ note: LockNote, to side: Int32, isSynced: Bool) {
    let text = Array(note.text(owner: getpid()).utf8)
    guard pwrite(side, text, text.count, 0) == text.count else { return }
    _ = ftruncate(side, off_t(text.count))
    if isSynced { _ = fsync(side) }
  }

  /// Opens and locks the file beside the database, whose lock outlasts a replacement of the database.
  private static func lockSide(_ path: String) throws(EmbeddedStoreError) -> Int32 {
    let side = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard side >= 0 else {
      throw errno == ENOENT
        ? .noDirectory(path: path) : .cannotOpen(path: path, reason: "its lock file: " + reason())
    }
    guard flock(side, LOCK_EX | LOCK_NB) == 0 else {
      let error: EmbeddedStoreError =
        errno == EWOULDBLOCK
        ? .inUse(path: path, owner: owner(side))
        : .cannotOpen(path: path, reason: "its lock file: " + reason())
      _ = close(side)
      throw error
    }
    return side
  }

  deinit { release() }

  /// Releases the lock. SQLite must have closed the file.
  func release() {
    held.withLock { held in
      guard let descriptors = held.descriptors.take() else { return }
      _ = Self.setLock(Int16(F_UNLCK), on: descriptors.database)
      _ = close(descriptors.database)
      Self.unlockSide(descriptors.side)
    }
  }

  // Dropped explicitly: a child that another thread has just forked shares the open files until its `exec`.
  private static func unlockSide(_ side: Int32) {
    _ = flock(side, LOCK_UN)
    _ = close(side)
  }

  private static func lockDatabase(_ path: String) throws(EmbeddedStoreError) -> Int32 {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .cannotOpen(path: path, reason: reason()) }
    // On a file system without such locks, only the side file is locked.
    guard !setLock(Int16(F_WRLCK), on: descriptor), errno == EAGAIN || errno == EACCES else {
      return descriptor
    }
    _ = close(descriptor)
    throw .inUse(path: path, owner: "another process")
  }

  /// Locks or unlocks one byte far behind those that SQLite locks. The lock belongs to the open file, not the process.
  private static func setLock(_ type: Int16, on descriptor: Int32) -> Bool {
    var lock = Glibc.flock()
    lock.l_type = type
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = 1 << 62
    lock.l_len = 1
    // `F_OFD_SETLK`, hidden by a feature macro.
    let setOpenFileLock: Int32 = 37
    return fcntl(descriptor, setOpenFileLock, &lock) == 0
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

/// Detects that the database or its side files were deleted, replaced or emptied while it is open: SQLite continues
/// with what it has in memory. Used on the database's thread, but for `close`; hence `@unchecked Sendable`.
final class FilePresence: @unchecked Sendable {
  let path: String
  private let database: FileStatus.Identity
  private let log: FileStatus.Identity?
  private let index: FileStatus.Identity?
  /// The index of the log; -1 if there is none. It stays open as long as the database: closing any descriptor of it
  /// would drop SQLite's own locks on it.
  private var indexDescriptor: Int32
  /// Whether the database had pages when it was opened.
  private let hadPages: Bool

  /// - Parameter database: The identity of the locked database file, whose log must already be open.
  init(path: String, database: FileStatus.Identity) {
    self.path = path
    self.database = database
    log = FileStatus(path: path + "-wal")?.identity
    indexDescriptor = open(path + "-shm", O_RDONLY | O_CLOEXEC)
    index = indexDescriptor < 0 ? nil : FileStatus(descriptor: indexDescriptor)?.identity
    hadPages = Self.length(of: path) > 0
  }

  deinit { close() }

  /// Ends the watch. The database must be closed, or left open for good.
  func close() {
    if indexDescriptor >= 0 { Glibc.close(indexDescriptor) }
    indexDescriptor = -1
  }

  /// The reason for which nothing may be committed; `nil` if the files are in place.
  var fault: String? {
    guard let found = FileStatus(path: path) else { return text("\(path) was deleted or moved") }
    guard found.identity == database else { return text("\(path) was replaced by another file") }
    guard !(found.size == 0 && hadPages) else { return text("\(path) was emptied") }
    guard log == nil || FileStatus(path: path + "-wal")?.identity == log else {
      return text("\(path)-wal, the log of the database, was deleted or replaced")
    }
    guard index == nil || FileStatus(path: path + "-shm")?.identity == index else {
      return text("\(path)-shm, the index of the database's log, was deleted or replaced")
    }
    guard !isLogShort else { return text("\(path)-wal, the log of the database, was emptied or shortened") }
    return nil
  }

  /// Whether the log lacks frames that its index has. Another process may have emptied it between two looks; the index
  /// then has changed, too.
  private var isLogShort: Bool {
    for _ in 0..<3 {
      guard let needed = neededLogLength, Self.length(of: path + "-wal") < needed else { return false }
      if neededLogLength == needed { return true }
    }
    return false
  }

  /// The length of a log with all frames of the index, in bytes; `nil` if it has none. The index begins with a header
  /// of native byte order (https://sqlite.org/walformat.html, 2.1): at 12 whether it is initialised, at 14
  /// the page size, at 16 the number of frames.
  private var neededLogLength: Int? {
    var header = [UInt8](repeating: 0, count: 20)
    guard indexDescriptor >= 0, pread(indexDescriptor, &header, header.count, 0) == header.count,
      header[12] == 1
    else { return nil }
    let (size, frames) = header.withUnsafeBytes {
      (Int($0.load(fromByteOffset: 14, as: UInt16.self)), Int($0.load(fromByteOffset: 16, as: UInt32.self)))
    }
    let pageSize = size == 1 ? 65_536 : size
    return frames == 0 ? nil : 32 + frames * (24 + pageSize)
  }

  static func length(of path: String) -> Int { FileStatus(path: path).map { Int($0.size) } ?? 0 }

  private func text(_ event: String) -> String {
    event + " while Semel runs: put the same file back, or stop Semel, restore a copy and start it again; "
      + "what was recorded since is lost, and an empty file would run every request again"
  }
}

/// The content of the file beside the database: its owner, and the point that the database has reached, by which a
/// start knows one that was lost or is older. Unreadable content and that of an earlier version note nothing.
enum LockNote: Equatable {
  static let maxLength = 96

  /// No start has ever succeeded.
  case new
  /// There may be a database, of which nothing is known.
  case unknown
  case reached(FileProgress)

  var progress: FileProgress? {
    guard case .reached(let progress) = self else { return nil }
    return progress
  }

  init(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
      .map { $0.split(separator: " ") }
    guard lines.first != ["new"] else {
      self = .new
      return
    }
    guard let words = lines.first, words.count >= 2, words[0] == "generation",
      let generation = Int(words[1]), (0...FileProgress.maxGeneration).contains(generation)
    else {
      self = .unknown
      return
    }
    self = .reached(
      FileProgress(
        generation: generation, start: Self.number("start", in: lines.dropFirst(2).first),
        latest: Self.number("latest", in: lines.dropFirst().first)))
  }

  private static func number(_ name: String, in words: [Substring]?) -> Int64 {
    guard let words, words.count == 2, words[0] == name else { return 0 }
    return max(Int64(words[1]) ?? 0, 0)
  }

  func text(owner: Int32) -> String {
    switch self {
    case .new: "\(owner)\nnew\n"
    case .unknown: "\(owner)\n"
    case .reached(let progress):
      "\(owner)\ngeneration \(progress.generation)\nlatest \(progress.latest)\nstart \(progress.start)\n"
    }
  }
}
