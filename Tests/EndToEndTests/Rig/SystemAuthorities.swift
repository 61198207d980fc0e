import Foundation
import TestSupport

/// The authorities that the system trusts, as a test has them: a library that is preloaded into a process, and leads it
/// from the system's folder to one of the test's own.
struct SystemAuthorities {
  private static let source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <limits.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/stat.h>

    static const char *led(const char *path, char own[PATH_MAX]) {
      static const char folder[] = "/etc/ssl/certs/";
      const char *other = getenv("SYSTEM_AUTHORITIES");
      if (!other || strncmp(path, folder, sizeof folder - 1)) return path;
      snprintf(own, PATH_MAX, "%s/%s", other, path + sizeof folder - 1);
      return own;
    }

    #define LEAD(result, name, type) \\
      result name(const char *restrict path, type argument) { \\
        char own[PATH_MAX]; \\
        result (*next)(const char *, type) = dlsym(RTLD_NEXT, #name); \\
        return next(led(path, own), argument); \\
      }
    LEAD(FILE *, fopen, const char *restrict)
    LEAD(FILE *, fopen64, const char *restrict)
    LEAD(int, stat, struct stat *restrict)
    LEAD(int, stat64, struct stat64 *restrict)
    """

  private let directory = TemporaryDirectory()

  /// The wrapper of a command that makes it trust them.
  var wrapper: [String] {
    ["env", "LD_PRELOAD=\(directory.file("led.so"))", "SYSTEM_AUTHORITIES=\(directory.file("certs"))"]
  }

  /// - Parameters:
  ///   - folder: the authority in the folder.
  ///   - bundle: the authority in the file with all of them.
  init(folder: Certificates, bundle: Certificates) async throws {
    let certs = URL(fileURLWithPath: directory.file("certs"))
    try FileManager.default.createDirectory(at: certs, withIntermediateDirectories: true)
    for (name, from) in [("one.pem", folder), ("ca-certificates.crt", bundle)] {
      try Data(contentsOf: URL(fileURLWithPath: from.authority)).write(to: certs.appendingPathComponent(name))
    }
    let source = directory.file("led.c")
    try Self.source.write(toFile: source, atomically: true, encoding: .utf8)
    // Swift comes with clang.
    for command in [
      ["openssl", "rehash", certs.path],
      ["clang", "-shared", "-fPIC", "-o", directory.file("led.so"), source],
    ] {
      let process = try ManagedProcess(command)
      guard try await process.exit() == .code(0) else { throw TestFailure("\(process.errors)") }
    }
  }
}
