import Glibc
import Idempotency
import NIOCore
import NIOPosix
import Platform
import TestSupport
import Testing

/// Clocks, entropy, threads, the kernel's files and its errors.
struct SystemServicesTests {
  @Test func `the clocks advance, and their units agree`() {
    let before = BootInstant.now
    #expect(BootInstant.now >= before)
    let seconds = WallClock.seconds()
    #expect(seconds > 1_700_000_000)
    #expect((0...60).contains(Int(WallClock.milliseconds() / 1000) - seconds))
    #expect((0...60).contains(Int(WallClock.nanoseconds() / 1_000_000_000) - seconds))
    #expect(processTimeNanoseconds() > 0)
  }

  @Test func `entropy repeats no number, also past one system call`() {
    var entropy = Entropy()
    let numbers = (0..<1000).map { _ in entropy.next() }
    #expect(Set(numbers).count == 1000)
  }

  @Test func `a thread runs its body`() async throws {
    let hasRun = Watched(false)
    startNeededThread { hasRun.withValue { $0 = true } }
    try await hasRun.until("the thread has run") { $0 ? () : nil }
  }

  @Test func `a small file of the kernel is read, and a missing one is none`() {
    #expect(SystemFile.text(of: "/proc/uptime")?.contains(" ") == true)
    #expect(SystemFile.text(of: "/proc/none") == nil)
  }

  @Test func `the kind of a file is known`() throws {
    let directory = TemporaryDirectory()
    let pipe = directory.file("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    let kinds: [(String, FileStatus.Kind)] = [
      ("/proc/uptime", .regular), ("/proc", .folder), ("/dev/null", .device), (pipe, .pipe),
    ]
    for (path, kind) in kinds { #expect(FileStatus(path: path)?.kind == kind, "\(path)") }
    #expect(FileStatus(path: directory.file("none")) == nil)
    withExtendedLifetime(directory) {}
  }

  @Test func `a span of an event loop counts in whole milliseconds`() {
    #expect(Milliseconds(TimeAmount.nanoseconds(1_999_999)) == 1)
    #expect(Milliseconds(TimeAmount.nanoseconds(-1_999_999)) == -1)
  }

  @Test func `the text of a failure to connect is that of its first address`() async {
    let connecting = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: 1)
    await #expect {
      _ = try await connecting.get()
    } throws: { error in
      error is NIOConnectionError && plainText(of: error) == "Connection refused"
    }
  }
}
