// swift-tools-version: 6.2
import PackageDescription

/// Whether `deploy/fuzz` builds: for libFuzzer and the address sanitizer, which no other build needs.
let isFuzzing = Context.environment["SEMEL_FUZZ"] != nil

/// Whether the modules' tests alone are built, as `deploy/test` does in release: the tests end to end and the
/// benchmarks are a third of what there is to compile, and run on builds of their own.
let isForModuleTests = Context.environment["SEMEL_MODULE_TESTS"] != nil

/// Whether `deploy/profile` builds: a binary that counts how often each part of it runs.
let isCounting = Context.environment["SEMEL_COUNTING"] != nil

/// The counts by which a release build is laid out. Functions that are local to a file are named by that alone, wherever
/// it is built. Earlier compilers cannot read the counts of this one.
#if compiler(>=6.3)
  let profile = [
    "-Xllvm", "-static-func-full-module-prefix=false", "-Xfrontend",
    isCounting
      ? "-ir-profile-generate" : "-ir-profile-use=\(Context.packageDirectory)/Sources/semel.profdata",
  ]
#else
  let profile: [String] = []
#endif

/// The settings of every module: the Swift 6 language mode, and warnings as errors.
let language: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

/// The settings of Semel's own modules: in release one optimisation over all of them, without which the proxy's generic
/// code would not be specialised for its store. That takes in what is `public` and nothing else, which is why modules
/// are `public` to each other although nobody imports them. Tests in debug check exclusive access at run time; release
/// trusts them, and `Run` has dependencies do the same. Fuzzed code is optimised and yet has every check.
let strict: [SwiftSetting] =
  language + [
    isFuzzing
      ? .unsafeFlags(["-sanitize=fuzzer,address", "-assert-config", "Debug", "-enable-testing"])
      : .unsafeFlags(
        ["-cross-module-optimization", "-enforce-exclusivity=unchecked"] + profile
          + (isForModuleTests ? ["-enable-testing"] : []), .when(configuration: .release))
  ]

/// Links Swift's runtime and Foundation into the release binary: it runs on machines without Swift, and a first run
/// takes a tenth less CPU. Foundation names its own parts only where it is compiled against as a static library, and
/// lld alone takes libraries in any order. What is linked dynamically is bound at the start, and read-only from then on.
/// The binary exports no symbol that it need not.
let staticRuntime = [
  "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "--no-export-dynamic",
  "-static-stdlib", "-use-ld=lld", "-lCoreFoundation", "-lFoundationInternationalization",
  "-l_FoundationCShims", "-l_FoundationCollections", "-l_FoundationICU",
]

/// A module of Semel's own. `exclude` names the pages among its sources.
func module(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

/// The settings of tests. In a release build the modules are optimised and their tests are not: the tests of the store
/// alone would take six times as long to compile.
let testing: [SwiftSetting] = language + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// The tests of one module.
func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, resources: resources, swiftSettings: testing)
}

/// A product that Semel itself uses, and the libraries for clients do not: a package that depends on these alone, with
/// `traits: []`, does not even fetch it.
func server(_ name: String, _ package: String) -> Target.Dependency {
  .product(name: name, package: package, condition: .when(traits: ["Server"]))
}

let nioCore: Target.Dependency = server("NIOCore", "swift-nio")
let nioPosix: Target.Dependency = server("NIOPosix", "swift-nio")
let nioEmbedded: Target.Dependency = server("NIOEmbedded", "swift-nio")
let nioHTTP1: Target.Dependency = server("NIOHTTP1", "swift-nio")
let nioTLS: Target.Dependency = server("NIOTLS", "swift-nio")
let nioSSL: Target.Dependency = server("NIOSSL", "swift-nio-ssl")
let nioHTTP2: Target.Dependency = server("NIOHTTP2", "swift-nio-http2")
let nioHPACK: Target.Dependency = server("NIOHPACK", "swift-nio-http2")
let asn1: Target.Dependency = server("SwiftASN1", "swift-asn1")
let x509: Target.Dependency = server("X509", "swift-certificates")
let nioConcurrency: Target.Dependency = server("NIOConcurrencyHelpers", "swift-nio")
let jwtKit: Target.Dependency = server("JWTKit", "jwt-kit")
let crypto: Target.Dependency = server("Crypto", "swift-crypto")
let logging: Target.Dependency = server("Logging", "swift-log")
let coreMetrics: Target.Dependency = server("CoreMetrics", "swift-metrics")
let lifecycle: Target.Dependency = server("ServiceLifecycle", "swift-service-lifecycle")

/// A module of the libraries for clients. An import shows in a public declaration only where it says `public`. It has no flags that SwiftPM calls unsafe, which no package may depend on.
func client(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Sources/Client/\(name)",
    swiftSettings: language + [.enableUpcomingFeature("InternalImportsByDefault")])
}

/// A product that SemelAsyncHTTPClient uses.
func adapter(_ name: String, _ package: String) -> Target.Dependency {
  .product(name: name, package: package, condition: .when(traits: ["AsyncHTTPClient"]))
}

let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let clientLogging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let clientMetrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")

let package = Package(
  name: "semel",
  // The oldest systems that have what the libraries for clients use, such as `Mutex`. Semel itself builds on Linux alone.
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .executable(name: "semel", targets: ["semel"]),
    .library(name: "SemelClient", targets: ["SemelClient"]),
    .library(name: "SemelOutbox", targets: ["SemelOutbox"]),
    .library(name: "SemelURLSession", targets: ["SemelURLSession"]),
    .library(name: "SemelAsyncHTTPClient", targets: ["SemelAsyncHTTPClient"]),
  ],
  // A package that names no traits gets all. One that names those that it needs fetches no more than they use.
  traits: [
    .trait(name: "Server", description: "The proxy, and all that it depends on."),
    .trait(name: "Outbox", description: "SemelOutbox, which brings GRDB along."),
    .trait(
      name: "AsyncHTTPClient",
      description: "SemelAsyncHTTPClient, which brings AsyncHTTPClient and NIO along."),
    .default(enabledTraits: ["Server", "Outbox", "AsyncHTTPClient"]),
  ],
  // Exact, since no Package.resolved is kept: every build is of the same sources. To raise one, change its version
  // here, and run `swift package update` and deploy/test.
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    .package(url: "https://github.com/apple/swift-asn1", exact: "1.7.4"),
    .package(url: "https://github.com/apple/swift-certificates", exact: "1.21.1"),
    .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
    .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-http2", exact: "1.46.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
    .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1"),
    .package(url: "https://github.com/hummingbird-project/swift-mustache", exact: "2.1.1"),
    .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
    .package(url: "https://github.com/vapor/jwt-kit", exact: "5.7.1"),
    // Those that the ones above bring along, which nothing here imports.
    .package(url: "https://github.com/swift-server/async-http-client", exact: "1.37.0"),
    .package(url: "https://github.com/apple/swift-algorithms", exact: "1.2.1"),
    .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
    .package(url: "https://github.com/apple/swift-atomics", exact: "1.3.0"),
    .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
    .package(url: "https://github.com/apple/swift-configuration", exact: "1.4.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", exact: "1.7.3"),
    .package(url: "https://github.com/apple/swift-http-structured-headers", exact: "1.7.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", exact: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-transport-services", exact: "1.28.0"),
    .package(url: "https://github.com/apple/swift-numerics", exact: "1.1.1"),
    .package(url: "https://github.com/apple/swift-service-context", exact: "1.5.1"),
    .package(url: "https://github.com/apple/swift-system", exact: "1.8.1"),
  ],
  targets: [
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CHiredis", pkgConfig: "hiredis", providers: [.apt(["libhiredis-dev"])]),
    .systemLibrary(
      name: "CLua", path: "Tests/Simulation/CLua", pkgConfig: "lua5.1",
      providers: [.apt(["liblua5.1-0-dev"])]),
    .systemLibrary(name: "CSwiftRuntime"),
    .target(name: "CMalloc"),
    // Programs that load Foundation may read its data; the release binary has Foundation to itself.
    .target(
      name: "CICUData",
      cSettings: [.define("SEMEL_WITHOUT_ICU_DATA", .when(platforms: [.linux], configuration: .release))]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),

    client("SemelClient", [httpTypes, clientLogging, clientMetrics]),
    client(
      "SemelOutbox",
      [
        "SemelClient", httpTypes, clientLogging, clientMetrics,
        .product(name: "GRDB", package: "GRDB.swift", condition: .when(traits: ["Outbox"])),
      ]),
    client("SemelURLSession", ["SemelClient", httpTypes]),
    client(
      "SemelAsyncHTTPClient",
      [
        "SemelClient", httpTypes, adapter("AsyncHTTPClient", "async-http-client"),
        adapter("NIOCore", "swift-nio"), adapter("NIOHTTP1", "swift-nio"), adapter("NIOPosix", "swift-nio"),
        adapter("NIOSSL", "swift-nio-ssl"),
      ]),

    module("Wire", [nioCore]),
    module(
      "Idempotency", ["CZlib", "CZstd", "Wire", nioCore, crypto],
      exclude: ["COMMANDS.md", "CONTRACT.md", "LIMITS.md", "OPERATION.md", "READING.md", "SETTINGS.md"]),
    module("Platform", ["Idempotency", "Wire", nioCore, nioPosix, nioHTTP2]),
    module("TLS", ["Idempotency", "Platform", "Wire", asn1, nioCore, nioSSL, x509]),
    module("Settings", ["Idempotency", "TLS", "Wire", server("Yams", "Yams")]),
    module("OpenAPI", ["Idempotency", "Wire", server("Yams", "Yams")]),
    module("Tokens", ["Idempotency", "Platform", "Wire", jwtKit, logging]),
    module("Telemetry", ["Idempotency", "Platform", "Wire", coreMetrics, logging]),
    module(
      "Store",
      [
        "CHiredis", "CZstd", "Idempotency", "Platform", "TLS", "Wire", crypto, nioCore, nioPosix, nioTLS,
        logging,
        server("GRDB", "GRDB.swift"),
        server("GRDBSQLite", "GRDB.swift"),
      ]),
    module(
      "Transport",
      [
        "Idempotency", "Platform", "TLS", "Wire", nioCore, nioPosix, nioTLS, nioHTTP2, nioHPACK, logging,
      ]),
    module("Calls", ["CCurl"]),
    module("Conformance", ["Platform", "Wire", crypto, nioCore, nioPosix, nioSSL, nioTLS]),
    module(
      "Proxy",
      [
        "Idempotency", "Platform", "TLS", "Telemetry", "Wire", nioCore, nioPosix, nioTLS, nioSSL, nioHTTP2,
        nioHPACK,
        logging,
      ]),
    module(
      "Admin",
      [
        "Idempotency", "Platform", "Telemetry", "Wire", nioCore, nioHTTP1, logging, lifecycle,
        server("HTTPTypes", "swift-http-types"),
        server("Hummingbird", "hummingbird"),
        server("HummingbirdCore", "hummingbird"),
        server("Mustache", "swift-mustache"),
      ]),
    .executableTarget(
      name: "semel",
      dependencies: [
        "Admin", "CICUData", "CMalloc", "CSwiftRuntime", "Calls", "Conformance", "Idempotency", "OpenAPI",
        "Platform",
        "Proxy",
        "Settings", "Store", "TLS", "Telemetry", "Tokens", "Transport", "Wire", nioCore, nioPosix,
        coreMetrics,
        logging,
        lifecycle,
        server("ArgumentParser", "swift-argument-parser"),
        server("UnixSignals", "swift-service-lifecycle"),
        server("Hummingbird", "hummingbird"),
      ],
      path: "Sources/CLI",
      swiftSettings: strict,
      linkerSettings: [.unsafeFlags(staticRuntime, .when(platforms: [.linux], configuration: .release))]),

    .executableTarget(
      name: "TransportBenchmark",
      dependencies: ["Idempotency", "Platform", "Transport", "Wire", nioCore, nioPosix, logging],
      path: "Tests/Benchmarks/Transport",
      swiftSettings: strict),
    .executableTarget(
      name: "MetricsBenchmark",
      dependencies: ["Telemetry", coreMetrics],
      path: "Tests/Benchmarks/Metrics",
      swiftSettings: strict),
    .executableTarget(
      name: "FingerprintBenchmark",
      dependencies: ["Idempotency", "Wire", nioCore],
      path: "Tests/Benchmarks/Fingerprint",
      swiftSettings: strict),
    .executableTarget(
      name: "HeadBenchmark",
      dependencies: ["Idempotency", "Wire", nioCore],
      path: "Tests/Benchmarks/Heads",
      swiftSettings: strict),
    .executableTarget(
      name: "EncodingBenchmark",
      dependencies: ["Idempotency", "Store", nioCore],
      path: "Tests/Benchmarks/Encoding",
      swiftSettings: strict),
    .target(
      name: "TestSupport",
      dependencies: [
        "Platform", nioCore, nioPosix, nioConcurrency, nioHTTP1, nioHTTP2, nioHPACK, logging,
      ],
      path: "Tests/TestSupport",
      swiftSettings: testing),
    .target(
      name: "WireOracle",
      dependencies: ["Wire", nioCore, nioEmbedded, nioHTTP1],
      path: "Tests/WireOracle",
      swiftSettings: strict),
    .target(
      name: "SimRedis",
      dependencies: ["CLua", crypto],
      path: "Tests/Simulation/SimRedis",
      swiftSettings: strict),
    tests("WireTests", ["TestSupport", "Wire", "WireOracle", nioCore]),
    tests("IdempotencyTests", ["Idempotency", "TestSupport", "Wire", nioCore, crypto]),
    tests("PlatformTests", ["Idempotency", "Platform", "TestSupport", nioCore, nioPosix]),
    tests("TLSTests", ["TLS", asn1, x509]),
    tests(
      "SettingsTests",
      ["Settings", "Idempotency", "TLS", "TestSupport", "Wire", server("Yams", "Yams")]),
    tests("OpenAPITests", ["OpenAPI", "Idempotency", "Settings", server("Yams", "Yams")]),
    tests("TokensTests", ["Tokens", "Idempotency", "TestSupport", "Wire", jwtKit, logging]),
    tests("TelemetryTests", ["Telemetry", "Idempotency", "Platform", coreMetrics, logging]),
    tests("AdminTests", ["Admin", "Idempotency", "Telemetry", logging, httpTypes]),
    tests("ConformanceTests", ["Conformance", "TestSupport", nioCore]),
    .executableTarget(
      name: "store-writer",
      dependencies: ["Idempotency", "Store", nioCore, logging],
      path: "Tests/StoreWriter",
      swiftSettings: strict),
    tests(
      "StoreTests",
      [
        "Store", "Idempotency", "Platform", "SimRedis", "TLS", "TestSupport", "Wire", "store-writer", nioCore,
        nioPosix, logging,
        server("GRDB", "GRDB.swift"),
      ]),
    tests("SimRedisTests", ["SimRedis", "Store", "TestSupport"]),
    tests(
      "TransportTests",
      ["Transport", "Idempotency", "Platform", "TestSupport", "Wire", nioCore, nioPosix, logging]),
    tests(
      "ProxyTests",
      [
        "Proxy", "Idempotency", "Platform", "Telemetry", "TestSupport", "Wire", nioCore, nioEmbedded,
        nioHPACK, nioHTTP2,
        logging,
      ]),
    .target(name: "CSimulation", path: "Tests/Simulation/CSimulation"),
    .executableTarget(
      name: "simulate",
      dependencies: [
        "CSimulation", "Idempotency", "Platform", "Proxy", "Settings", "SimRedis", "Store", "Telemetry",
        "Transport", "Wire",
        nioCore, nioHTTP2, nioHPACK, logging,
      ],
      path: "Tests/Simulation",
      exclude: [
        "CLua", "CSimulation", "SimRedis", "mutant_list.py", "mutants.py", "planted", "test_simulator.py",
      ],
      swiftSettings: strict),
    // Both packages have these tests: the clients' own builds without NIO, and tests the other transport.
    .testTarget(
      name: "ClientTransportTests",
      dependencies: [
        "SemelAsyncHTTPClient", "SemelClient", adapter("AsyncHTTPClient", "async-http-client"), httpTypes,
      ],
      path: "Tests/ClientTests/ClientTransportTests",
      swiftSettings: testing + [.define("ASYNC_HTTP_CLIENT")]),
    tests("EndToEndTests", ["TestSupport"], resources: [.copy("Clients"), .copy("VTC")]),
  ]
)

if isForModuleTests {
  package.targets.removeAll {
    $0.name == "EndToEndTests" || $0.name == "simulate" || $0.name.hasSuffix("Benchmark")
  }
}

if isFuzzing {
  package.targets += [
    .systemLibrary(name: "CFuzzer", path: "Tests/Fuzz/CFuzzer"),
    .executableTarget(
      name: "semel-fuzz",
      dependencies: [
        "CFuzzer", "Idempotency", "Settings", "Store", "Wire", "WireOracle", nioCore,
        server("GRDB", "GRDB.swift"),
      ],
      path: "Tests/Fuzz",
      exclude: ["CFuzzer", "Seeds"],
      swiftSettings: strict,
      // The linker that comes with Swift: gold fails on the sanitizer's symbols.
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]),
  ]
}

// A package that depends on this one shares with it what both depend on, and may need later versions. During its
// resolution the manifest has no folder, and afterwards one among the checkouts.
if Context.packageDirectory == "/" || Context.packageDirectory.contains("/checkouts/") {
  package.dependencies = package.dependencies.map { dependency in
    guard case .sourceControl(_, let location, .exact(let version)) = dependency.kind else {
      return dependency
    }
    return .package(url: location, from: version)
  }
}
