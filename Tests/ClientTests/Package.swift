// swift-tools-version: 6.2
import PackageDescription

// The tests of the libraries for clients. They build alone, within a minute or two, since this package takes no more of
// Semel than a client does.

let language: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

let semelClient: Target.Dependency = .product(name: "SemelClient", package: "semel")
let semelOutbox: Target.Dependency = .product(name: "SemelOutbox", package: "semel")
let urlSession: Target.Dependency = .product(name: "SemelURLSession", package: "semel")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let metricsTestKit: Target.Dependency = .product(name: "MetricsTestKit", package: "swift-metrics")
let coreMetrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")

let package = Package(
  name: "semel-client-tests",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "semel", path: "../..", traits: ["Outbox"]),
    .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0"),
    .package(url: "https://github.com/apple/swift-metrics", exact: "2.13.0"),
    .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
  ],
  targets: [
    .target(
      name: "ClientTestSupport", dependencies: [semelClient, httpTypes], path: "ClientTestSupport",
      swiftSettings: language),
    .testTarget(
      name: "SemelClientTests",
      dependencies: ["ClientTestSupport", semelClient, httpTypes, coreMetrics, metricsTestKit],
      path: "SemelClientTests",
      swiftSettings: language),
    .testTarget(
      name: "ClientTransportTests", dependencies: [semelClient, urlSession, httpTypes],
      path: "ClientTransportTests", swiftSettings: language),
    .executableTarget(
      name: "fault-client", dependencies: [semelClient, semelOutbox, urlSession, httpTypes, grdb],
      path: "FaultClient", swiftSettings: language),
    .executableTarget(
      name: "client-benchmark", dependencies: [semelClient, semelOutbox, httpTypes, grdb], path: "Benchmark",
      swiftSettings: language),
    .testTarget(
      name: "SemelOutboxTests",
      dependencies: ["ClientTestSupport", semelClient, semelOutbox, httpTypes, grdb],
      path: "SemelOutboxTests",
      swiftSettings: language),
  ]
)
