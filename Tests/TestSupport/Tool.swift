import Foundation
import Glibc
import Testing

/// The programs of others that the tests use.
///
/// A test that needs one which is not installed is skipped, and the reason is reported. With `SEMEL_TEST_ALL` in the
/// environment it fails instead: `deploy/test` installs all of them.
package enum Tool {
  private static let areAllRequired = ProcessInfo.processInfo.environment["SEMEL_TEST_ALL"] != nil

  /// Debian keeps nginx in a folder that only root has in its PATH.
  private static let folders: [Substring] =
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":") + ["/usr/sbin"]

  /// The path of a program, looked up by its name. A path is returned as it is. Skips the test if there is no such
  /// program.
  package static func path(of name: String) throws -> String {
    guard !name.contains("/") else { return name }
    let paths = folders.map { "\($0)/\(name)" }
    guard let path = paths.first(where: { access($0, X_OK) == 0 }) else {
      try skip("\(name) is not installed; deploy/install test installs it")
    }
    return path
  }

  /// Skips the test if the program is not installed. Needed only before something other than the test starts it, such
  /// as a shell, or a task that the tests share.
  package static func require(_ name: String) throws { _ = try path(of: name) }

  /// Ends the test for this reason; of a parametrised one, its present case.
  package static func skip(_ reason: String) throws -> Never {
    if areAllRequired { throw TestFailure(reason) }
    #if compiler(>=6.3)
      let comment = Comment(rawValue: reason)
      // Swift Testing does not report the cancelled cases of a test.
      if Test.Case.current?.isParameterized == true { Issue.record(comment, severity: .warning) }
      try Test.cancel(comment)
    #else
      throw TestFailure(reason)
    #endif
  }
}
