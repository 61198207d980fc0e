import Idempotency
import Platform

/// The time since the machine was started, with the identity of that start: evidence of how long Semel was stopped that
/// does not depend on the wall clock.
struct MachineUptime {
  /// The kernel's random identifier of this start of the machine.
  let startID: String
  let span: Milliseconds

  init(startID: String, span: Milliseconds) {
    self.startID = startID
    self.span = span
  }

  /// Reads the uptime; `nil` if the system does not provide it.
  static func read() -> MachineUptime? {
    guard
      let startID = SystemFile.text(of: "/proc/sys/kernel/random/boot_id")?.split(separator: "\n").first,
      let seconds = SystemFile.text(of: "/proc/uptime")?.split(separator: " ").first.flatMap({ Double($0) })
    else { return nil }
    return MachineUptime(
      startID: String(startID), span: Milliseconds(Int64(max(0, min(seconds * 1000, 1e15)))))
  }
}
