#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The clock of leases between the processes of one machine: the time since its boot, which nobody can set.
public struct LeaseClock: Sendable {
  /// The time since the boot, which passes while the machine sleeps.
  public var elapsed: @Sendable () -> Duration
  /// The name of the boot. A lease of another boot has lapsed.
  public var boot: String

  /// A clock of a test, or of a system that this one does not know.
  public init(elapsed: @escaping @Sendable () -> Duration, boot: String) {
    self.elapsed = elapsed
    self.boot = boot
  }

  /// The clock of the running system.
  public static let system = LeaseClock(elapsed: { systemElapsed }, boot: systemBoot)

  private static var systemElapsed: Duration {
    var time = timespec()
    #if os(Linux) || os(Android)
      clock_gettime(CLOCK_BOOTTIME, &time)
    #else
      clock_gettime(CLOCK_MONOTONIC, &time)
    #endif
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  private static var systemBoot: String {
    #if os(Linux) || os(Android)
      guard let file = fopen("/proc/sys/kernel/random/boot_id", "r") else { return "" }
      defer { fclose(file) }
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = fread(&bytes, 1, bytes.count, file)
      return String(decoding: bytes[..<count].prefix { $0 > 0x20 }, as: UTF8.self)
    #else
      var bytes = [UInt8](repeating: 0, count: 64)
      var size = bytes.count
      guard sysctlbyname("kern.bootsessionuuid", &bytes, &size, nil, 0) == 0 else { return "" }
      return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    #endif
  }
}
