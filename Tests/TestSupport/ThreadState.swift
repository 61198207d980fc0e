import Foundation
import Glibc

/// The states of a process's threads, from the kernel.
enum ThreadState {
  /// Returns once every thread of a process that was sent SIGSTOP stands still, or it is gone.
  ///
  /// `kill` returns before: one of the threads has to be scheduled to stop the others, which on a busy machine takes
  /// milliseconds in which they go on.
  static func awaitStop(of process: pid_t) {
    while let states = states(of: process), !states.allSatisfy({ "TtZX".contains($0) }) { sched_yield() }
  }

  /// The letter of each thread's state (proc(5), `stat`); `nil` where there is no such process.
  private static func states(of process: pid_t) -> [Character]? {
    let folder = "/proc/\(process)/task"
    guard let threads = try? FileManager.default.contentsOfDirectory(atPath: folder), !threads.isEmpty else {
      return nil
    }
    return threads.compactMap { thread in
      guard let stat = try? String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8),
        let name = stat.lastIndex(of: ")")
      else { return nil }
      return stat[name...].dropFirst(2).first
    }
  }
}
