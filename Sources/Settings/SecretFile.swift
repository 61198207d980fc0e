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

  /// The secret in the file that a member names.
  ///
  /// - Parameter remedy: Advice that ends the text of a refusal.
  static func named(_ path: String, remedy: String? = nil) throws(Refusal) -> Secret {
    guard !path.isEmpty else {
      throw Refusal("must not be empty: write the path of a file that holds a secret")
    }
    do throws(Fault) {
      return try read(path)
    } catch {
      throw Refusal("names \(path), which \(error)" + (remedy.map { "; \($0)" } ?? ""))
    }
  }

  /// The bytes of a file that has at most `maxBytes`.
  ///
  /// - Parameter isReadAgain: Whether the file will be read again. A pipe is refused then: it is waited for, and yields
  ///   its content once.
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
