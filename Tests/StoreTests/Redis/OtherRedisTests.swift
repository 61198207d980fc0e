import Foundation
import TestSupport
import Testing

/// The servers beside the installed Redis, which other tests leave out where there are none.
struct OtherRedisTests {
  /// Whether `deploy/test` has installed the servers' packages, as it does on this kind of machine alone.
  private static let areRequired: Bool = {
    #if arch(x86_64)
      let environment = ProcessInfo.processInfo.environment
      return environment["SEMEL_TEST_ALL"] != nil && environment["SEMEL_TEST_PYTHON"] != nil
    #else
      return false
    #endif
  }()

  @Test(
    .enabled(
      if: areRequired || !OtherRedis.installed.isEmpty, "no package of Tests/servers.txt is installed"))
  func `every server whose package is installed is tested`() {
    #expect(OtherRedis.available == OtherRedis.installed, "a package has its program elsewhere")
    if Self.areRequired { #expect(OtherRedis.installed == OtherRedis.allCases) }
  }
}
