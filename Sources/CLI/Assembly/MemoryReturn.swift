import CMalloc
import Glibc
import Platform
import ServiceLifecycle

/// Returns the memory that a burst leaves behind. Of what is freed, malloc returns the end of its heap alone: after ten
/// thousand connections the process would keep nearly three times its memory for good.
struct MemoryReturn: Service {
  /// The time between two looks.
  private static let pause = Duration.seconds(5)
  /// The bytes that may lie idle: the next requests take them again, and each page that was returned costs a fault.
  private static let spare = 16 << 20

  func run() async throws {
    await cancelWhenGracefulShutdown {
      var least = Self.residentMemory ?? 0
      // Memory that is not of malloc, such as relocated data and stacks, is never idle.
      var foreign = least - Int(semel_used_memory())
      var wasIdle = false
      while !Task.isCancelled {
        try? await Task.sleep(for: Self.pause)
        guard let resident = Self.residentMemory else { continue }
        least = min(least, resident)
        // The count of what is in use takes a walk through what is not.
        let isIdle =
          resident - least > Self.spare && resident - Int(semel_used_memory()) - foreign > Self.spare
        // Under load much is free at one moment and in use at the next.
        guard isIdle, wasIdle else {
          wasIdle = isIdle
          continue
        }
        semel_return_memory()
        foreign = (Self.residentMemory ?? resident) - Int(semel_used_memory())
        wasIdle = false
      }
    }
  }

  /// The bytes of memory of the process's own; `nil` if the system does not say (proc(5), `statm`).
  private static var residentMemory: Int? {
    guard let text = SystemFile.text(of: "/proc/self/statm") else { return nil }
    let pages = text.split(separator: " ").prefix(3).compactMap { Int($0) }
    guard pages.count == 3 else { return nil }
    return (pages[1] - pages[2]) * sysconf(Int32(_SC_PAGESIZE))
  }
}
