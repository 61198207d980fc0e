#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Metadata that differs between two states of a file, so that a change is seen without reading the file.
public struct FileStamp: Equatable, Sendable {
  private let device: UInt64
  private let inode: UInt64
  private let size: Int64
  private let seconds: Int
  private let nanoseconds: Int

  /// Reads the metadata of a file; `nil` if the file cannot be read.
  public init?(_ path: String) {
    var found = stat()
    guard access(path, R_OK) == 0, stat(path, &found) == 0 else { return nil }
    device = UInt64(found.st_dev)
    inode = UInt64(found.st_ino)
    size = Int64(found.st_size)
    #if canImport(Darwin)
      let changed = found.st_mtimespec
    #else
      let changed = found.st_mtim
    #endif
    seconds = Int(changed.tv_sec)
    nanoseconds = Int(changed.tv_nsec)
  }
}
