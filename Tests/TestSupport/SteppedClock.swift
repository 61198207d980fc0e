import Foundation
import Glibc

/// A wall clock that a test sets: a library that is preloaded into a process, and adds an offset to what the system
/// says.
///
/// `libfaketime` replaces more than that, under which servers with an allocator of their own do not start.
package final class SteppedClock: Sendable {
  /// The library's source, which the runs among faults use, too.
  private static let source = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../Faults/stepped_clock.c").standardized.path

  private let directory = TemporaryDirectory()

  package init() async throws {
    // Swift comes with clang.
    let process = try ManagedProcess([
      "clang", "-shared", "-fPIC", "-O1", "-o", directory.file("clock.so"), Self.source,
    ])
    guard try await process.exit() == .code(0) else { throw TestFailure("\(process.errors)") }
    try write(0)
  }

  /// The variables of the environment under which a process has this clock.
  package var environment: [String: String] {
    ["LD_PRELOAD": directory.file("clock.so"), "STEPPED_CLOCK": directory.file("offset")]
  }

  /// Sets the clock to this number of seconds ahead of the system's.
  package func set(ahead seconds: Int64) throws { try write(seconds) }

  /// Has the clock stand still at this time, in microseconds since 1970.
  package func stop(at microseconds: Int64) throws { try write(microseconds, place: 8) }

  private func write(_ number: Int64, place: off_t = 0) throws {
    let file = open(directory.file("offset"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(file) }
    var number = number
    guard pwrite(file, &number, 8, place) == 8 else { throw TestFailure("the clock cannot be set") }
  }
}
