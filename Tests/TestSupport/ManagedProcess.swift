import Glibc
import NIOConcurrencyHelpers
import Platform

/// A child process with its output captured. Killed and reaped when the last reference goes.
package final class ManagedProcess: Sendable {
  /// The end of a process.
  package enum Exit: Equatable, Sendable {
    case code(Int32)
    case signal(Int32)
  }

  /// The present knowledge of a process.
  package struct State: Sendable {
    package var output: [UInt8] = []
    package var errors: [UInt8] = []
    /// Set once it is reaped, after its last output.
    package var exit: Exit?
  }

  package let id: pid_t
  /// Its arguments, for messages.
  package let name: String
  package let state = Watched(State())

  /// Starts `arguments[0]`, found by PATH, without standard input. Skips the test if that program is not installed.
  package init(_ arguments: [String], environment: [String: String] = [:]) throws {
    name = arguments.joined(separator: " ")
    let output = try Self.pipe()
    let errors = try Self.pipe()
    defer {
      close(output.writing)
      close(errors.writing)
    }
    do {
      id = try Spawner.start(arguments, environment: environment, output: (output.writing, errors.writing))
    } catch {
      close(output.reading)
      close(errors.reading)
      throw error
    }
    let (id, state) = (id, state)
    startNeededThread {
      Self.read(output.reading, errors.reading, into: state)
      Self.reap(id, into: state)
    }
  }

  deinit { signal(SIGKILL) }

  /// Sends a signal; nothing where the process has ended.
  package func signal(_ number: Int32) {
    // Under the lock that reaping takes, so that the id cannot have become another process's.
    state.withValue { state in
      if state.exit == nil { _ = Glibc.kill(id, number) }
    }
  }

  /// Its exit status, awaited.
  @discardableResult
  package func exit(within span: Duration = .seconds(20)) async throws -> Exit {
    try await state.until("the end of \(name)", within: span) { $0.exit }
  }

  /// Ends it at once (SIGKILL) and waits until it is gone.
  package func kill() async throws {
    signal(SIGKILL)
    try await exit()
  }

  /// The first line of its output or its errors that contains `text`, awaited.
  @discardableResult
  package func line(containing text: String, within span: Duration = .seconds(20)) async throws -> String {
    try await state.until("a line with \(text) from \(name)", within: span) { state in
      for bytes in [state.output, state.errors] {
        if let place = bytes.offset(of: text) { return bytes.line(around: place) }
      }
      return nil
    }
  }

  /// The number of whole lines of its output that match. Awaits `count`.
  package func lines(
    atLeast count: Int, within span: Duration = .seconds(20),
    where matches: @escaping @Sendable (String) -> Bool
  ) async throws -> Int {
    // Each line is looked at once, whenever there are more of them.
    let seen = NIOLockedValueBox((offset: 0, found: 0))
    return try await state.until("\(count) lines from \(name)", within: span) { state in
      seen.withLockedValue { seen in
        while let end = state.output.offset(of: "\n", from: seen.offset) {
          let line = String(decoding: state.output[seen.offset..<end], as: UTF8.self)
          if !line.isEmpty, matches(line) { seen.found += 1 }
          seen.offset = end + 1
        }
        return seen.found >= count ? seen.found : nil
      }
    }
  }

  /// Standard output so far.
  package var output: String { String(decoding: state.value.output, as: UTF8.self) }
  /// Standard error so far.
  package var errors: String { String(decoding: state.value.errors, as: UTF8.self) }

  /// Waits until the program listens on the loopback address.
  package func awaitListening(at port: Int, within span: Duration = .seconds(20)) async throws {
    let deadline = ContinuousClock.now + span
    while (try? await RawClient(port: port)) == nil {
      guard state.value.exit == nil, ContinuousClock.now < deadline else {
        throw TestFailure("\(name) does not listen:\n\(errors)")
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  private static func pipe() throws -> (reading: Int32, writing: Int32) {
    var descriptors: [Int32] = [0, 0]
    guard Glibc.pipe(&descriptors) == 0 else { throw TestFailure("no pipe, errno \(errno)") }
    return (descriptors[0], descriptors[1])
  }

  /// Reads both pipes to their ends.
  private static func read(_ output: Int32, _ errors: Int32, into state: Watched<State>) {
    var polls = [output, errors].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    var bytes = [UInt8](repeating: 0, count: 65536)
    while polls.contains(where: { $0.fd >= 0 }) {
      guard poll(&polls, nfds_t(polls.count), -1) >= 0 || errno == EINTR else { break }
      for index in polls.indices where polls[index].fd >= 0 && polls[index].revents != 0 {
        let count = Glibc.read(polls[index].fd, &bytes, bytes.count)
        if count > 0 {
          state.withValue { state in
            if index == 0 { state.output += bytes[..<count] } else { state.errors += bytes[..<count] }
          }
        } else if count == 0 || errno != EINTR {
          close(polls[index].fd)
          polls[index].fd = -1
        }
      }
    }
  }

  private static func reap(_ id: pid_t, into state: Watched<State>) {
    var information = siginfo_t()
    while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) == -1, errno == EINTR {}
    state.withValue { state in
      var status: Int32 = 0
      while waitpid(id, &status, 0) == -1, errno == EINTR {}
      let number = status & 0x7F
      state.exit = number == 0 ? .code((status >> 8) & 0xFF) : .signal(number)
    }
  }
}
