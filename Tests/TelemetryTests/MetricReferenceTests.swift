import Foundation
import Telemetry
import Testing

/// The page that is made from the families of metrics.
struct MetricReferenceTests {
  private static let path =
    "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/deploy/manual/all-metrics.md"

  @Test func `the reference of metrics is that of the program`() throws {
    if ProcessInfo.processInfo.environment["SEMEL_WRITE_METRICS"] != nil {
      try MetricReference.page.write(toFile: Self.path, atomically: true, encoding: .utf8)
    }
    let page = try String(contentsOfFile: Self.path, encoding: .utf8)
    #expect(
      page == MetricReference.page,
      "write it anew: SEMEL_WRITE_METRICS=1 swift test --filter MetricReferenceTests")
  }

  @Test func `each metric has one row with its help`() {
    let rows = MetricReference.page.split(separator: "\n").filter { $0.hasPrefix("| `semel_") }
    #expect(rows.count == MetricFamily.all.count && Set(rows).count == rows.count)
    #expect(rows.allSatisfy { $0.hasSuffix(". |") }, "\(rows.filter { !$0.hasSuffix(". |") })")
  }
}
