import Glibc

/// A file's identity, kind, size and last change: equal as long as nobody changed the file.
///
/// The members of `stat` are visible in this file alone: in a module that also sees Foundation, the compiler attributes
/// them to either of two C modules, depending on the order of its files.
public struct FileStatus: Equatable, Sendable {
  /// The identity of the file behind a path. A file that is deleted and created again has another one.
  public struct Identity: Equatable, Sendable {
    private let device: UInt64
    private let inode: UInt64

    fileprivate init(_ status: stat) {
      device = UInt64(truncatingIfNeeded: status.st_dev)
      inode = UInt64(truncatingIfNeeded: status.st_ino)
    }
  }

  /// The kind of a file.
  public enum Kind: Sendable {
    case regular, folder, pipe, socket
    /// A device that transfers characters or blocks, such as a terminal, a disk or `/dev/null`.
    case device
  }

  public let identity: Identity
  public let kind: Kind
  /// The length in bytes.
  public let size: Int64
  /// The time of the last change of content, in seconds and nanoseconds of the file system's clock.
  private let changed: [Int]

  /// Reads the status of the file at a path; `nil` if there is none.
  ///
  /// - Parameter followsLinks: Whether the status is that of the file which a symbolic link names.
  public init?(path: String, followsLinks: Bool = true) {
    var status = stat()
    guard (followsLinks ? stat(path, &status) : lstat(path, &status)) == 0 else { return nil }
    self.init(status)
  }

  /// Reads the status of a file that this process may read; `nil` if there is none.
  public init?(readable path: String) {
    guard access(path, R_OK) == 0 else { return nil }
    self.init(path: path)
  }

  /// Reads the status of an open file; `nil` if that fails.
  public init?(descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  public var isSocket: Bool { kind == .socket }

  private init(_ status: stat) {
    identity = Identity(status)
    kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .folder
      case S_IFIFO: .pipe
      case S_IFSOCK: .socket
      default: .device
      }
    size = Int64(status.st_size)
    changed = [Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec)]
  }
}
