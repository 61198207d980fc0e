import Glibc

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
