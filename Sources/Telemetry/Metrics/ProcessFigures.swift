import Glibc
import Platform

/// The kernel's numbers about this process.
enum ProcessFigures {
  /// - Parameter start: The time when the process started, in milliseconds since 1970.
  static func read(start: Int64) -> [MetricFigure] {
    var figures = [MetricFigure(.processCPU, Double(processTimeNanoseconds()) / 1_000_000_000)]
    if let pages = SystemFile.text(of: "/proc/self/statm")?.split(separator: " ").dropFirst().first {
      figures.append(MetricFigure(.processMemory, (Int(pages) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))))
    }
    if let count = openFiles() { figures.append(MetricFigure(.processFiles, count)) }
    figures.append(MetricFigure(.processStart, Double(start) / 1000))
    return figures
  }

  private static func openFiles() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    return max(0, count - 3)
  }
}
