import Glibc
import Idempotency

/// A file whose first line is a secret.
public enum SecretFile {
  /// The reason for which a file yields no secret. It reveals nothing of the file's content.
  public struct Fault: Error, Equatable, CustomStringConvertible {
    /// The text that follows the file's name, such as `does not exist`.
    public let description: String
  }

  /// A secret is a line; more is another kind of file.
  private static let maxBytes = 64 << 10

  public static func read(_ path: String) throws(Fault) -> Secret {
    guard let text = String(validating: try content(of: path, maxBytes: maxBytes), as: UTF8.self) else {
      throw Fault(description: "is not UTF-8 text")
    }
    guard text.first != "\u{FEFF}" else {
      throw Fault(
        description: "begins with a byte order mark; save it without, since it would be part of the secret")
    }
    let line = text.prefix { !$0.isNewline }
    guard !line.isEmpty else { throw Fault(description: "holds no secret in its first line") }
    return Secret(String(line))
  }

  /// - Parameter remedy: Advice that ends the text of a refusal.
  static func named(_ path: String, remedy: String? = nil) throws(Refusal) -> Secret {
    try require(!path.isEmpty, "must not be empty: write the path of a file that holds a secret")
    do throws(Fault) {
      return try read(path)
    } catch {
      throw Refusal("names \(path), which \(error)" + (remedy.map { "; \($0)" } ?? ""))
    }
  }

  /// The bytes of a file that has at most `maxBytes`.
  ///
  /// - Parameter isReadAgain: Refuses a pipe, which is waited for and yields its content once.
  public static func content(of path: String, maxBytes: Int, isReadAgain: Bool = false) throws(Fault)
    -> [UInt8]
  {
    // To open a pipe that has no writer would take for ever.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | (isReadAgain ? O_NONBLOCK : 0))
    guard descriptor >= 0 else { throw fault() }
    guard let file = fdopen(descriptor, "r") else {
      let fault = fault()
      close(descriptor)
      throw fault
    }
    defer { fclose(file) }
    guard !isReadAgain || lseek(descriptor, 0, SEEK_CUR) == 0 else {
      throw Fault(description: "is a pipe, and yields its content but once; name a regular file")
    }
    var bytes = [UInt8](repeating: 0, count: maxBytes + 1)
    let count = fread(&bytes, 1, bytes.count, file)
    guard ferror(file) == 0 else { throw fault() }
    guard count <= maxBytes else { throw Fault(description: "has more than \(maxBytes) bytes") }
    return Array(bytes.prefix(count))
  }

  private static func fault() -> Fault {
    let code = errno
    return Fault(
      description: code == ENOENT
        ? "does not exist" : "cannot be read: \(String(cString: strerror(code)))")
  }
}

/// The token that a start makes where `admin.token_file` names a file of the working directory that does not exist.
public enum AdminTokenFile {
  /// The length of a token that a start makes: 32 random bytes in hexadecimal digits.
  public static let madeBytes = 64

  /// Whether a start makes the file.
  public static func isMade(at path: String) -> Bool {
    !path.isEmpty && !path.hasPrefix("/") && access(path, F_OK) != 0 && errno == ENOENT
  }

  /// Makes the file with a token of `madeBytes`, which only its owner may read. One that is there meanwhile stays.
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
