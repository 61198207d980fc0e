import Foundation
import Glibc

/// A wall clock that a test sets: a library that is preloaded into a process, and adds an offset to what the system says.
///
/// `libfaketime` replaces more than that, under which servers with an allocator of their own do not start.
package final class SteppedClock: Sendable {
  private static let source = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>

    static volatile int64_t *offset;

    __attribute__((constructor)) static void map(void) {
      const char *path = getenv("STEPPED_CLOCK");
      int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
      if (file < 0) return;
      void *page = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
      if (page != MAP_FAILED) offset = page;
      close(file);
    }

    static int64_t seconds(void) { return offset ? *offset : 0; }

    int clock_gettime(clockid_t clock, struct timespec *now) {
      int code = syscall(SYS_clock_gettime, clock, now);
      if (!code && clock == CLOCK_REALTIME) now->tv_sec += seconds();
      return code;
    }

    int gettimeofday(struct timeval *restrict now, void *restrict zone) {
      struct timespec precise;
      int code = clock_gettime(CLOCK_REALTIME, &precise);
      now->tv_sec = precise.tv_sec;
      now->tv_usec = precise.tv_nsec / 1000;
      return code;
    }

    time_t time(time_t *now) {
      struct timespec precise;
      clock_gettime(CLOCK_REALTIME, &precise);
      if (now) *now = precise.tv_sec;
      return precise.tv_sec;
    }
    """

  private let directory = TemporaryDirectory()

  package init() async throws {
    let file = directory.file("clock.c")
    try Self.source.write(toFile: file, atomically: true, encoding: .utf8)
    // Swift comes with clang.
    let process = try ManagedProcess([
      "clang", "-shared", "-fPIC", "-O1", "-o", directory.file("clock.so"), file,
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

  private func write(_ seconds: Int64) throws {
    let file = open(directory.file("offset"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(file) }
    var seconds = seconds
    guard pwrite(file, &seconds, 8, 0) == 8 else { throw TestFailure("the clock cannot be set") }
  }
}
