import Glibc

/// A directory of a test's own, removed with all that is in it when the last reference goes.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init() {
    // Short, because the path of a unix socket has 107 bytes at most.
    var template = Array("/tmp/semel-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "TemporaryDirectory: mkdtemp failed, errno \(errno)")
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  deinit { Self.remove(path) }

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
