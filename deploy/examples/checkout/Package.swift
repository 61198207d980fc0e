// swift-tools-version: 6.2
import PackageDescription

// In a project of your own the first dependency is
//   .package(url: "https://…/semel", from: "…", traits: ["Outbox"])
// which fetches nothing of the proxy.
let package = Package(
  name: "checkout",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "semel", path: "../../..", traits: ["Outbox"]),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
  ],
  targets: [
    .target(
      name: "Shop",
      dependencies: [
        .product(name: "SemelOutbox", package: "semel"), .product(name: "SemelURLSession", package: "semel"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: [.enableUpcomingFeature("InternalImportsByDefault")]),
    .executableTarget(name: "checkout", dependencies: ["Shop"]),
    .executableTarget(
      name: "worker",
      dependencies: [
        "Shop", .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ]),
  ]
)
