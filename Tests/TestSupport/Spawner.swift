import Dispatch
import Glibc
import NIOConcurrencyHelpers
import NIOPosix

/// Starts child processes that end with the tests, however those end.
///
/// All are started from one thread that lives as long as the tests do: the kernel kills a child (`setpriv --pdeathsig`)
/// when the thread that started it is gone. A child inherits no descriptor but its own three.
package enum Spawner {
  private static let thread: NIOThreadPool = {
    let pool = NIOThreadPool(numberOfThreads: 1)
    pool.start()
    return pool
  }()

  private typealias CloseFrom =
    @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32

  /// `posix_spawn_file_actions_addclosefrom_np`, which glibc has since 2.34 and Swift's view of it lacks.
  private static let closeFrom: CloseFrom = {
    guard let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else {
      preconditionFailure("Spawner: this C library cannot close a child's descriptors")
    }
    return unsafeBitCast(symbol, to: CloseFrom.self)
  }()

  private static let wrapper: [String] = {
    let setpriv = "/usr/bin/setpriv"
    return access(setpriv, X_OK) == 0 ? [setpriv, "--pdeathsig", "KILL"] : []
  }()

  /// Starts `arguments[0]`, found by PATH, and returns its process id. Skips the test if that program is not installed.
  ///
  /// - Parameters:
  ///   - environment: variables over those of the tests.
  ///   - output: descriptors for its standard output and error; `nil`: the tests' own.
  package static func start(
    _ arguments: [String], environment: [String: String] = [:], output: (Int32, Int32)? = nil
  ) throws -> pid_t {
    let arguments = wrapper + [try Tool.path(of: arguments[0])] + arguments.dropFirst()
    let result = NIOLockedValueBox<(code: Int32, process: pid_t)>((0, 0))
    let done = DispatchSemaphore(value: 0)
    thread.submit { _ in
      let outcome = spawn(arguments, environment: environment, output: output)
      result.withLockedValue { $0 = outcome }
      done.signal()
    }
    done.wait()
    let (code, process) = result.withLockedValue { $0 }
    guard code == 0 else {
      throw TestFailure("cannot start \(arguments): \(String(cString: strerror(code)))")
    }
    return process
  }

  private static func spawn(
    _ arguments: [String], environment: [String: String], output: (Int32, Int32)?
  ) -> (code: Int32, process: pid_t) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    if let output {
      posix_spawn_file_actions_adddup2(&actions, output.0, 1)
      posix_spawn_file_actions_adddup2(&actions, output.1, 2)
    }
    _ = closeFrom(&actions, 3)

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The threads of the test process block and ignore signals that a child must take.
    var none = sigset_t()
    sigemptyset(&none)
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    return withPointers(arguments) { arguments in
      withPointers(merged(environment)) { environment in
        var process: pid_t = 0
        let code = posix_spawnp(&process, arguments[0]!, &actions, &attributes, arguments, environment)
        return (code, process)
      }
    }
  }

  private static func merged(_ environment: [String: String]) -> [String] {
    var variables = environment.map { "\($0.key)=\($0.value)" }
    var next = environ
    while let entry = next.pointee {
      let text = String(cString: entry)
      if environment[String(text.prefix { $0 != "=" })] == nil { variables.append(text) }
      next += 1
    }
    return variables
  }

  private static func withPointers<Result>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
  ) -> Result {
    let pointers = strings.map { strdup($0) }
    defer { for pointer in pointers { free(pointer) } }
    return body(pointers + [nil])
  }
}
