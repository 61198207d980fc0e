import Glibc
import NIOCore
import NIOPosix
import Wire

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

/// The small files in which the kernel shows its state (`/proc`), and the reasons for which files cannot be read.
public enum SystemFile {
  /// The length of a read; all of these files are shorter.
  private static let maxBytes = 256

  /// Returns a file's text; `nil` if the file cannot be read or is empty.
  public static func text(of path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: maxBytes)
    let count = read(descriptor, &bytes, bytes.count)
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }

  /// Returns the reason for which a file that exists cannot be read, in parentheses, such as ` (Permission denied)`;
  /// empty for any other file.
  public static func fault(of path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    defer { if descriptor >= 0 { close(descriptor) } }
    var byte: UInt8 = 0
    guard descriptor < 0 || read(descriptor, &byte, 1) < 0, errno != ENOENT else { return "" }
    return " (\(String(cString: strerror(errno))))"
  }
}

extension SocketAddress {
  /// The address in the form of the configuration: `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`.
  public var plainText: String {
    guard let ipAddress, let port else { return ServerAddress.unix(path: pathname ?? "").description }
    return ServerAddress.tcp(host: ipAddress, port: port).description
  }
}

/// The system's text for an error, without the names of the functions that it passed through. For a failure to connect,
/// it is the text for the first address that was tried.
public func plainText(of error: any Error) -> String {
  let error = error.atFirstAddress
  if error is NIOConnectionError { return "its name is not known" }
  if let error = error as? IOError { return String(cString: strerror(error.errnoCode)) }
  let text = "\(error)"
  // BoringSSL's own text names a file of its source.
  return text.contains("CERTIFICATE_VERIFY_FAILED")
    ? "the server's certificate has expired, or is of no authority that is trusted (tls.ca)" : text
}

extension Error {
  /// The error at the first address that was tried, if this is NIO's failure to connect to any; otherwise the error
  /// itself, as when a name has no address.
  public var atFirstAddress: any Error {
    guard let failure = self as? NIOConnectionError, let first = failure.connectionErrors.first else {
      return self
    }
    return first.error
  }
}

/// The failure to listen on an address. Its description includes the address, which the system's own text lacks.
public struct ListenError: Error, CustomStringConvertible {
  public let address: String
  /// The system's number of the error; `nil` if it is none of the system's.
  public let number: CInt?
  public let description: String

  public init(address: String, _ error: any Error) {
    self.address = address
    number = (error.atFirstAddress as? IOError)?.errnoCode
    description = "cannot listen on \(address): \(plainText(of: error))"
  }
}
