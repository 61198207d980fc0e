import Glibc
import Synchronization

/// A directory of a test's own, removed with all that is in it when the last reference goes, or else when the process
/// exits: what tests share is `static`, and never released.
package final class TemporaryDirectory: Sendable {
  private static let present = Mutex<Set<String>>([])
  private static let removesAtExit: Void = {
    atexit { for path in TemporaryDirectory.present.withLock({ $0 }) { TemporaryDirectory.remove(path) } }
  }()

  package let path: String

  package init() {
    // Short, because the path of a unix socket has 107 bytes at most.
    var template = Array("/tmp/semel-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "TemporaryDirectory: mkdtemp failed, errno \(errno)")
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    Self.removesAtExit
    _ = Self.present.withLock { [path] in $0.insert(path) }
  }

  deinit {
    Self.remove(path)
    _ = Self.present.withLock { [path] in $0.remove(path) }
  }

  /// The path of a file in it.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  private static func remove(_ path: String) {
    if let directory = opendir(path) {
      while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
          pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { remove("\(path)/\(name)") }
      }
      closedir(directory)
      rmdir(path)
    } else {
      unlink(path)
    }
  }
}
