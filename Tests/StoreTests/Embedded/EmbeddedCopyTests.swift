import GRDB
import Glibc
import Logging
import TestSupport
import Testing

@testable import Store

/// A copy of the embedded store is on the disk before it is reported, or there is none.
struct EmbeddedCopyTests {
  private static func isDirectory(_ descriptor: Int32) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Runs a test with the paths of a store's file, and of a copy that is not there yet.
  private func withStore(_ body: (_ path: String, _ target: String) throws -> Void) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    let store = try EmbeddedStore(path: path, logger: Logger(label: "test"))
    await store.close()
    try body(path, directory.file("copy.db"))
  }

  @Test func `a copy is written to the disk with its directory's entry`() async throws {
    try await withStore { path, target in
      var written: [String] = []
      let bytes = try EmbeddedCopy.make(ofFile: path, to: target) { descriptor in
        written.append(Self.isDirectory(descriptor) ? "directory" : "file")
        return 0
      }
      #expect(written == ["file", "directory"])
      #expect(bytes > 0 && bytes == FilePresence.length(of: target))
    }
  }

  @Test(arguments: [false, true])
  func `a copy that does not reach the disk is removed`(_ isOfDirectory: Bool) async throws {
    try await withStore { path, target in
      let error = EmbeddedStoreError.cannotCopy(target: target, reason: String(cString: strerror(EIO)))
      #expect(throws: error) {
        try EmbeddedCopy.make(ofFile: path, to: target) { descriptor in
          guard Self.isDirectory(descriptor) == isOfDirectory else { return 0 }
          errno = EIO
          return -1
        }
      }
      #expect(access(target, F_OK) != 0)
      // So the next one may take its place.
      let bytes = try EmbeddedCopy.make(ofFile: path, to: target)
      #expect(bytes > 0)
    }
  }

  @Test func `a directory that cannot be written by itself is no failure`() async throws {
    try await withStore { path, target in
      let bytes = try EmbeddedCopy.make(ofFile: path, to: target) { descriptor in
        errno = EINVAL
        return Self.isDirectory(descriptor) ? -1 : 0
      }
      #expect(bytes == FilePresence.length(of: target))
    }
  }

  @Test func `a copy in many steps is the store at one moment, whatever is written meanwhile`() async throws {
    try await withStore { path, target in
      let owner = try DatabaseQueue(path: path)
      let insert = "INSERT INTO fact (name, value) VALUES ('test-' || ?, hex(zeroblob(4000)))"
      let count = "SELECT count(*) FROM fact WHERE name LIKE 'test-%'"
      try owner.write { for number in 0..<50 { try $0.execute(sql: insert, arguments: [number]) } }
      var parts: [Double] = []
      let noted = { (part: Double) in
        parts.append(part)
        // A copy that began anew after each change would never end.
        guard parts.count < 1000 else { return }
        try? owner.write { try $0.execute(sql: insert, arguments: [50 + parts.count]) }
      }
      _ = try EmbeddedCopy.make(
        ofFile: path, to: target, pagesPerStep: 10, progress: noted, sync: { _ in 0 })
      #expect((10..<1000).contains(parts.count) && parts.last == 1 && parts == parts.sorted(), "\(parts)")
      #expect(try owner.read { try Int.fetchOne($0, sql: count) } == 50 + parts.count)
      let copy = try DatabaseQueue(path: target)
      #expect(try copy.read { try Int.fetchOne($0, sql: count) } == 50)
      #expect(try copy.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    }
  }
}
