import Glibc
import NIOCore
import Platform

/// The reason for which a unix socket's path cannot be taken.
public struct UnixPathTaken: Error, CustomStringConvertible {
  public enum Reason: Sendable { case isServed, isNoSocket }

  public let reason: Reason

  public var description: String {
    switch reason {
    case .isServed: "another process listens there; stop it first, or give this one a path of its own"
    case .isNoSocket: "there is a file that is no socket; remove it, or choose another path"
    }
  }
}

/// A listening unix socket and its file. Never takes the file from a process that still serves it, and removes it at
/// the end only if it is still this socket's.
struct UnixListenerSocket: Sendable {
  let descriptor: CInt
  private let path: String
  private let identity: FileStatus.Identity

  /// Binds the path and listens there. Replaces a socket that nobody serves: a killed process left it.
  ///
  /// - Parameter mode: The socket's permissions, in force before anybody can connect.
  init(path: String, mode: Int, backlog: Int32) throws {
    try Self.removeLeftover(path)
    let descriptor = try Self.socket()
    var isBound = false
    do {
      try Self.withAddress(path) { address, length in
        try Self.check(bind(descriptor, address, length), "bind")
      }
      isBound = true
      try Self.check(chmod(path, mode_t(mode)), "chmod")
      try Self.check(listen(descriptor, backlog), "listen")
      guard let file = Self.file(path) else { throw IOError(errnoCode: errno, reason: "lstat") }
      identity = file.identity
    } catch {
      close(descriptor)
      if isBound { unlink(path) }
      throw error
    }
    self.path = path
    self.descriptor = descriptor
  }

  /// Removes the file, unless another process has put its own in the place.
  func removeFile() {
    if Self.file(path)?.identity == identity { unlink(path) }
  }

  private static func removeLeftover(_ path: String) throws {
    guard let file = file(path) else { return }
    guard file.isSocket else { throw UnixPathTaken(reason: .isNoSocket) }
    guard try !isServed(path) else { throw UnixPathTaken(reason: .isServed) }
    unlink(path)
  }

  /// Whether a process listens there, also one whose queue is full or that refuses this process.
  private static func isServed(_ path: String) throws -> Bool {
    let descriptor = try socket()
    defer { close(descriptor) }
    let status = try withAddress(path) { connect(descriptor, $0, $1) }
    return status == 0 || (errno != ECONNREFUSED && errno != ENOENT)
  }

  private static func file(_ path: String) -> FileStatus? { FileStatus(path: path, followsLinks: false) }

  private static func socket() throws -> CInt {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = Glibc.socket(AF_UNIX, kind, 0)
    try check(descriptor, "socket")
    return descriptor
  }

  private static func check(_ status: CInt, _ call: String) throws {
    guard status >= 0 else { throw IOError(errnoCode: errno, reason: call) }
  }

  private static func withAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
  ) throws -> Result {
    // `SocketAddress` checks that the path is short enough for a socket.
    try SocketAddress(unixDomainSocketPath: path).withSockAddr { try body($0, socklen_t($1)) }
  }
}
