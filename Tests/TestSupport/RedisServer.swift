import Foundation
import Glibc
import Synchronization

/// A real `redis-server` of a test's own, in a temporary directory. Killed with the last reference, or with the tests.
///
/// `@unchecked`, because `process` changes: only the one test that owns the server kills and restarts it, a step at a
/// time.
package final class RedisServer: @unchecked Sendable {
  package enum StartError: Error { case cannotStart(String) }

  /// Its port of the loopback address, and its unix socket.
  package let port: Int
  package let socketPath: String
  private let directory = TemporaryDirectory()
  private let program: String
  private let arguments: [String]
  private let clock: SteppedClock?
  private var process: pid_t = 0

  /// Servers that nobody has ended; one in a static variable never is.
  private static let running = Mutex<Set<pid_t>>([])
  private static let killsAtExit: Void = {
    _ = atexit {
      RedisServer.running.withLock { for process in $0 { RedisServer.send(SIGKILL, to: process) } }
    }
  }()

  /// Starts a server and waits until it replies.
  ///
  /// - Parameters:
  ///   - program: the program; `nil` for the `redis-server` of PATH.
  ///   - arguments: further options, such as `["--requirepass", "secret"]`; the last one of a name counts.
  ///   - appendOnly: whether it writes every change to disk at once, so that `kill` and `restart` lose nothing.
  ///   - clock: its clock, if that is not the system's.
  package init(
    program: String? = nil, arguments: [String] = [], appendOnly: Bool = false, clock: SteppedClock? = nil
  ) async throws {
    self.program = program ?? "redis-server"
    self.clock = clock
    let port = FreePort.find()
    self.port = port
    socketPath = directory.file("redis.sock")
    self.arguments =
      [
        "--port", "\(port)", "--bind", "127.0.0.1", "--unixsocket", socketPath, "--dir", directory.path,
        "--save", "", "--logfile", directory.file("redis.log"), "--appendonly", appendOnly ? "yes" : "no",
        "--appendfsync", "always",
      ] + arguments
    try await start()
  }

  /// Starts a node of a cluster that has no other nodes yet.
  ///
  /// - Parameters:
  ///   - clusterTimeout: the time after which it takes a silent node for dead.
  ///   - arguments: further options.
  package convenience init(clusterTimeout: Duration, arguments: [String]) async throws {
    // The default is 10000 above the port, where others may listen.
    let bus = FreePort.find()
    let milliseconds = Int(clusterTimeout.components.seconds * 1000)
    try await self.init(
      arguments: [
        "--cluster-enabled", "yes", "--cluster-port", "\(bus)", "--cluster-node-timeout", "\(milliseconds)",
        "--repl-diskless-sync-delay", "0",
      ] + arguments)
  }

  /// The port for other nodes of its cluster; `nil` if it belongs to none.
  package var busPort: Int? {
    arguments.firstIndex(of: "--cluster-port").flatMap { Int(arguments[$0 + 1]) }
  }

  /// Starts a Sentinel and waits until it replies.
  ///
  /// - Parameters:
  ///   - name: the name of the master.
  ///   - master: its port.
  ///   - quorum: the number of Sentinels that have to take the master for dead before one of them replaces it.
  ///   - lines: further lines of its file.
  package init(
    sentinelOf name: String, master: Int, quorum: Int = 1, lines: [String] = []
  ) async throws {
    let port = FreePort.find()
    self.port = port
    socketPath = directory.file("redis.sock")
    let file = directory.file("sentinel.conf")
    let text = [
      "port \(port)", "bind 127.0.0.1", "unixsocket \(socketPath)", "dir \(directory.path)",
      "logfile \(directory.file("redis.log"))",
      "sentinel monitor \(name) 127.0.0.1 \(master) \(quorum)",
      "sentinel down-after-milliseconds \(name) 2000", "sentinel failover-timeout \(name) 4000",
    ]
    try (text + lines + [""]).joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
    program = "redis-server"
    arguments = [file, "--sentinel"]
    clock = nil
    try await start()
  }

  deinit { kill() }

  /// Ends it at once, as a crash of its machine would (SIGKILL), and waits until it is gone.
  package func kill() { end(SIGKILL) }

  /// Ends it in order (SIGTERM), and waits until it is gone.
  package func stop() { end(SIGTERM) }

  /// Stops it in the middle of whatever it does (SIGSTOP), and returns once it stands still. Its sockets go on
  /// accepting and buffering.
  package func freeze() {
    signal(SIGSTOP)
    ThreadState.awaitStop(of: process)
  }

  /// Lets it go on after `freeze` (SIGCONT).
  package func thaw() { signal(SIGCONT) }

  /// Starts it again on the same port, with what its append-only file holds.
  package func restart() async throws {
    kill()
    try await start()
  }

  /// Starts it after `kill` or `stop`, and waits until it replies.
  package func start() async throws {
    precondition(process == 0, "RedisServer: started twice")
    process = try Self.spawn([program] + arguments, clock?.environment ?? [:])
    for _ in 0..<6000 {
      if let response = try? command(["PING"]), !response.hasPrefix("-LOADING") { return }
      var status: Int32 = 0
      if waitpid(process, &status, WNOHANG) == process {
        Self.running.withLock { _ = $0.remove(process) }
        process = 0
        throw StartError.cannotStart("redis-server ended with status \(status)")
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    throw StartError.cannotStart("redis-server does not reply")
  }

  private func signal(_ number: Int32) {
    precondition(process != 0, "RedisServer: not running")
    Self.send(number, to: process)
  }

  private static func send(_ number: Int32, to process: pid_t) {
    _ = Glibc.kill(process, number)
  }

  private func end(_ number: Int32) {
    guard process != 0 else { return }
    // A stopped process does not take SIGTERM before it goes on.
    signal(number)
    signal(SIGCONT)
    var status: Int32 = 0
    while waitpid(process, &status, 0) == -1, errno == EINTR {}
    Self.running.withLock { _ = $0.remove(process) }
    process = 0
  }

  private static func spawn(_ arguments: [String], _ environment: [String: String]) throws -> pid_t {
    let process = try Spawner.start(arguments, environment: environment)
    _ = killsAtExit
    running.withLock { _ = $0.insert(process) }
    return process
  }
}
