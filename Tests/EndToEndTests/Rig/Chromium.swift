import Glibc
import TestSupport

/// Debian's Chromium, without a window and with a profile of its own.
struct Chromium: Sendable {
  /// Whether it is there; `deploy/install test` installs it.
  static let isInstalled = access(path, X_OK) == 0
  private static let path = "/usr/bin/chromium"

  private let directory = TemporaryDirectory()
  let process: ManagedProcess

  /// Opens a page, which stays open until the process is killed.
  init(opening url: String) throws { try self.init(opening: [url]) }

  /// Opens pages, each in a tab of its own.
  init(opening urls: [String]) throws {
    let profile = directory.file("profile")
    process = try ManagedProcess(
      [
        Self.path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--no-proxy-server",
        "--user-data-dir=\(profile)",
      ] + urls,
      environment: [
        "HOME": directory.path, "XDG_CONFIG_HOME": directory.path, "XDG_CACHE_HOME": directory.path,
      ])
  }
}
