// swift-tools-version: 6.2
import PackageDescription

// A user's package that depends on SemelClient alone, as deploy/checks/client builds it: on a repository with a version,
// whose path it hands over. What this package fetches, builds and links is what the library costs its users.

let repository = Context.environment["SEMEL_REPOSITORY"] ?? "../.."

let package = Package(
  name: "client-alone",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(url: "file://\(repository)", from: "1.0.0", traits: []),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
  ],
  targets: [
    .executableTarget(
      name: "client-alone",
      dependencies: [
        .product(name: "SemelClient", package: "semel"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
      ],
      path: "Sources")
  ]
)
