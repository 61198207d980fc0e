import Idempotency

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

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
    guard let startID = text(of: "/proc/sys/kernel/random/boot_id"), !startID.isEmpty,
      let seconds = text(of: "/proc/uptime")?.split(separator: " ").first.flatMap({ Double($0) })
    else { return nil }
    return MachineUptime(
      startID: startID, span: Milliseconds(Int64(max(0, min(seconds * 1000, 1e15)))))
  }

  private static func text(of path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { _ = close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { return nil }
    return String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }
}
