import Foundation
import TestSupport
import Testing

/// Command lines that a command refuses only when it runs.
struct UsageTests {
  private func errors(_ arguments: [String]) async throws -> [Substring] {
    let process = try ManagedProcess([SemelProcess.binary] + arguments)
    #expect(try await process.exit() == .code(2), "\(arguments)")
    return process.errors.split(separator: "\n")
  }

  @Test(arguments: [
    (["http://127.0.0.1:1/", "--request", "/nowhere"], "/nowhere cannot be read: No such file or directory"),
    (["127.0.0.1", "--request", "BODY"], "127.0.0.1 is not an absolute URL of HTTP"),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--ca", "/nowhere"],
      "--ca: /nowhere cannot be read: No such file or directory"
    ),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--vary", "item"],
      "--vary is a JSON pointer, which begins with a slash: /item"
    ),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--id", "id"],
      "id is no JSON pointer, which begins with a slash: /id"
    ),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--only", "9.9"],
      "--only: there is no section or case 9.9"
    ),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--profile", "x"],
      "--profile is ietf, stripe or semel, not x"
    ),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--header", "Idempotency_Key: k"],
      "--header: the check makes the field Idempotency_Key itself"
    ),
    (
      ["http://127.0.0.1:1/", "--request", "BODY", "--other-caller", "Content-Length: 3"],
      "--other-caller: the check makes the field Content-Length itself"
    ),
  ])
  func `wrong usage shows the usage of its command`(arguments: [String], error: String) async throws {
    let directory = TemporaryDirectory()
    let body = directory.file("body.json")
    try "{}".write(toFile: body, atomically: true, encoding: .utf8)
    let arguments = arguments.map { $0 == "BODY" ? body : $0 }
    let refused = try await errors(["conformance"] + arguments)
    #expect(refused.first == "Error: \(error)")
    // The same as where the line cannot be parsed.
    let usage = try await errors(["conformance"] + arguments + ["--level", "x"]).drop {
      !$0.hasPrefix("Usage:")
    }
    #expect(refused.dropFirst() == usage, "\(refused)")
    #expect(usage.first?.hasPrefix("Usage: semel conformance ") == true)
    #expect(usage.last == "  See 'semel conformance --help' for more information.")
  }

  @Test(arguments: [
    (["demo", "--port", "99999"], "--port is a port from 0 to 65535, and 0 is any free one"),
    (["init", "-"], "give the name of the file to write, such as semel.yaml"),
    (["init", ""], "give the name of the file to write, such as semel.yaml"),
    (["demo", "--backend-port=-1"], "--backend-port is a port from 0 to 65535, and 0 is any free one"),
    (
      ["explain", "semel.yaml", "POST", "v1/orders"],
      "give an absolute URL, or a path with its slash: http://host/v1/orders or /v1/orders"
    ),
    (
      ["explain", "semel.yaml", "POST", "127.0.0.1:8080/v1/orders"],
      "give an absolute URL, or a path with its slash: http://host/v1/orders or /v1/orders"
    ),
  ])
  func `a port, a file or a URL that cannot be is refused with what is expected`(
    arguments: [String], error: String
  ) async throws {
    let refused = try await errors(arguments)
    #expect(refused.first == "Error: \(error)", "\(refused)")
  }

  @Test func `a store that init does not know is refused by its option`() async throws {
    let directory = TemporaryDirectory()
    let process = try ManagedProcess([
      SemelProcess.binary, "init", directory.file("semel.yaml"), "--store", "foo",
    ])
    #expect(try await process.exit() == .code(78))
    let forms = "redis://host:port/0, rediss://host:port/0 or unix:/path"
    #expect(
      process.errors
        == "semel: --store is neither embedded nor a Redis' URL, which must be \(forms)\n")
    #expect(!FileManager.default.fileExists(atPath: directory.file("semel.yaml")))
  }

  @Test func `a file that cannot be read is named with the reason`() async throws {
    let directory = TemporaryDirectory()
    let good = directory.file("semel.yaml")
    try "upstreams: {b: {url: 'http://h'}}".write(toFile: good, atomically: true, encoding: .utf8)
    let folder = directory.file("")
    func resolve(_ body: String) -> [String] {
      let id = String(repeating: "A", count: 43)
      return ["key", "resolve", "--id", id, "--applied", "--status", "201", "--body", body]
    }
    let put = ["key", "put", "--route", "a", "--key", "b", "--applied", "--status", "201", "-d", "@/nowhere"]
    let socket = directory.file("socket")
    let listener = try RawServer(.unix(path: socket)) { _ in }
    defer { listener.close() }
    let device = "it is a device, not a file or a pipe"
    let missing = "/nowhere cannot be read: No such file or directory"
    let cases: [([String], Int32, String)] = [
      (["check", "/nowhere"], 78, "/nowhere: cannot be read (No such file or directory); give the path"),
      (["check", folder], 78, "\(folder): cannot be read (Is a directory); give the path"),
      (["explain", good, "POST", "/a", "-d", "@/nowhere"], 1, missing),
      (resolve("/nowhere"), 1, missing), (resolve(folder), 1, "\(folder) cannot be read: Is a directory"),
      (put, 1, missing),
      (["check", "/dev/null"], 78, "/dev/null: cannot be read (\(device)); give the path"),
      (resolve("/dev/null"), 1, "/dev/null cannot be read: \(device); leave --body out for an empty body\n"),
      (
        ["explain", good, "POST", "/a", "-d", "@/dev/null"], 1,
        "/dev/null cannot be read: \(device); leave -d out for an empty body\n"
      ),
      (
        ["check", socket], 78,
        "\(socket): cannot be read (it is a socket, not a file or a pipe); give the path"
      ),
    ]
    for (arguments, code, text) in cases {
      let process = try ManagedProcess([SemelProcess.binary] + arguments)
      #expect(try await process.exit() == .code(code), "\(arguments)")
      #expect(process.errors.contains(text), "\(arguments): \(process.errors)")
    }
  }
}
