import Foundation
import Settings
import Testing

/// The page that is made from the schema.
struct ReferenceTests {
  private static let path =
    "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    + "/Sources/Idempotency/SETTINGS.md"

  @Test func `the reference of settings is that of the schema`() throws {
    if ProcessInfo.processInfo.environment["SEMEL_WRITE_SETTINGS"] != nil {
      try SettingsReference.page.write(toFile: Self.path, atomically: true, encoding: .utf8)
    }
    let page = try String(contentsOfFile: Self.path, encoding: .utf8)
    let differ = zip(page.split(separator: "\n"), SettingsReference.page.split(separator: "\n")).filter {
      $0 != $1
    }
    #expect(
      page == SettingsReference.page,
      "write it anew: SEMEL_WRITE_SETTINGS=1 swift test --filter ReferenceTests; \(differ.prefix(3))")
  }

  @Test func `every member is described in a sentence`() {
    let rows = SettingsReference.page.split(separator: "\n").filter { $0.hasPrefix("| `") }
    #expect(rows.count > 100)
    for row in rows {
      let help = row.dropLast(2).split(separator: " | ", omittingEmptySubsequences: false).last ?? ""
      #expect((1...30).contains(help.split(separator: " ").count), "\(row)")
    }
    let names = rows.compactMap { $0.split(separator: "`").dropFirst().first }
    #expect(Set(names).count == names.count)
  }
}
