import Glibc

/// The token that a start makes where `admin.token_file` names a file of the working directory that does not exist yet.
///
/// A path from the root is one of a secret that somebody else provides, and an error if it is missing.
public enum AdminTokenFile {
  /// The length of a token that a start makes: 32 random bytes in hexadecimal digits.
  public static let madeBytes = 64

  /// Whether a start makes the file.
  public static func isMade(at path: String) -> Bool {
    !path.isEmpty && !path.hasPrefix("/") && access(path, F_OK) != 0 && errno == ENOENT
  }

  /// Makes the file, which only its owner may read. One that another process has made meanwhile stays.
  ///
  /// - Parameter token: The token, of `madeBytes`.
  public static func make(at path: String, _ token: String) throws(SecretFile.Fault) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      if errno == EEXIST { return }
      throw SecretFile.Fault(description: "cannot be made: \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    let bytes = Array((token + "\n").utf8)
    guard write(descriptor, bytes, bytes.count) == bytes.count else {
      let code = errno
      unlink(path)
      throw SecretFile.Fault(description: "cannot be written: \(String(cString: strerror(code)))")
    }
  }
}
