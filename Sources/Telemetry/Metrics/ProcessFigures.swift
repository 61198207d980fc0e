#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The kernel's numbers about this process.
enum ProcessFigures {
  /// Reads them all.
  ///
  /// - Parameter start: The time when the process started, in milliseconds since 1970.
  static func read(start: Int64) -> [MetricFigure] {
    var figures = [MetricFigure(.processCPU, cpuSeconds())]
    if let pages = text(of: "/proc/self/statm").flatMap({ $0.split(separator: " ").dropFirst().first }) {
      figures.append(MetricFigure(.processMemory, (Int(pages) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))))
    }
    if let count = openFiles() { figures.append(MetricFigure(.processFiles, count)) }
    figures.append(MetricFigure(.processStart, Double(start) / 1000))
    return figures
  }

  private static func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  }

  private static func openFiles() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // Without `.`, `..` and the folder's own descriptor.
    return max(0, count - 3)
  }

  private static func text(of path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = bytes.withUnsafeMutableBytes { systemRead(descriptor, $0) }
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }
}

private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, bytes.baseAddress, bytes.count)
}
