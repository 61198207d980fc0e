import Foundation
import Glibc
import TestSupport
import Testing

/// `semel check` on lists and members that contradict themselves.
struct CheckTests {
  private func check(_ route: String, top: String = "workers: 1") async throws -> (
    exit: ManagedProcess.Exit, lines: [String]
  ) {
    let directory = TemporaryDirectory()
    try """
    listen: [{address: 127.0.0.1:8080}]
    upstreams: {orders: {url: "http://127.0.0.1:9000"}}
    store: {kind: embedded, path: semel.db}
    \(top)
    routes:
      - name: orders
        match: {path: /v1/**}
        caller: {parts: [address]}
        \(route.replacing("\n", with: "\n    "))
    """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let process = try ManagedProcess([SemelProcess.binary, "check", directory.file("semel.yaml")])
    let exit = try await process.exit()
    let lines = process.errors.replacing(directory.file("semel.yaml"), with: "FILE").split(separator: "\n")
    return (exit, lines.map(String.init))
  }

  @Test func `an element that a list has twice is reported with its line and member`() async throws {
    let (exit, lines) = try await check(
      """
      key:
        from:
          - "header:A"
          - "header:a"
      fingerprint:
        headers: [a, A]
        ignore:
          - /a
          - /b
          - /a
      """)
    #expect(exit == .code(78))
    let end = "; take one of them out"
    #expect(
      lines == [
        "FILE:12:11: routes[0].key.from[1]: is given twice, first in line 11\(end)",
        "FILE:14:20: routes[0].fingerprint.headers[1]: is given twice, first in line 14\(end)",
        "FILE:18:11: routes[0].fingerprint.ignore[2]: is given twice, first in line 16\(end)",
      ], "\(lines)")
  }

  @Test func `a store's file that cannot be opened here is warned of, as at the start`() async throws {
    let directory = TemporaryDirectory()
    try "hello".write(toFile: directory.file("short"), atomically: true, encoding: .utf8)
    let text = String(repeating: "no database\n", count: 500)
    try text.write(toFile: directory.file("text"), atomically: true, encoding: .utf8)
    try "".write(toFile: directory.file("empty"), atomically: true, encoding: .utf8)
    let foreign = "the file is not a database; mend store.path, or move the file away"
    for (path, fault) in [
      (directory.file("none/semel.db"), "its directory does not exist; create it, or mend store.path"),
      (directory.file("semel.db"), nil),
      (
        directory.file("text/semel.db"),
        "cannot be opened: its lock file: Not a directory; start Semel again once the store can be used"
      ),
      (directory.file("short"), foreign), (directory.file("text"), foreign), (directory.file("empty"), nil),
    ] as [(String, String?)] {
      try """
      listen: [{address: '127.0.0.1:\(FreePort.find())'}]
      upstreams: {orders: {url: "http://127.0.0.1:1"}}
      store: {kind: embedded, path: \(path)}
      routes: [{name: orders, match: {path: /v1/**}, caller: {parts: [address]}}]
      """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
      let check = try ManagedProcess([SemelProcess.binary, "check", directory.file("semel.yaml")])
      #expect(try await check.exit() == .code(0))
      #expect(check.errors == fault.map { "warning: store \(path): \($0)\n" } ?? "")
      guard let fault else { continue }
      let run = try ManagedProcess([SemelProcess.binary, "run", directory.file("semel.yaml")])
      #expect(try await run.exit() == .code(1))
      #expect(run.errors.contains("semel: store \(path): \(fault)\n"), "\(run.errors)")
    }
  }

  @Test func `a file may come from a pipe`() async throws {
    for (text, status) in [("upstreams: {b: {url: 'http://h'}}", Int32(0)), ("upstreams: {}", 78), ("", 78)] {
      let words = ["sh", "-c", "printf %s \"$1\" | \"$0\" check /dev/stdin", SemelProcess.binary, text]
      let check = try ManagedProcess(words)
      #expect(try await check.exit() == .code(status), "\(check.errors)")
      #expect(check.errors.contains("/dev/stdin:1:1: the file is empty") == text.isEmpty, "\(check.errors)")
    }
  }

  @Test(arguments: [["check"], ["run"], ["explain"], ["store", "stats"], ["store", "backup"]])
  func `a named pipe that nobody writes to is refused`(command: [String]) async throws {
    let directory = TemporaryDirectory()
    let path = directory.file("semel.yaml")
    #expect(mkfifo(path, 0o600) == 0)
    let more =
      ["explain": ["POST", "/v1/orders"], "backup": [directory.file("copy")]][command.last ?? ""] ?? []
    let process = try ManagedProcess([SemelProcess.binary] + command + [path] + more)
    #expect(try await process.exit() == .code(78))
    let text = "\(path): is a named pipe; give the path of a file, or pipe it into /dev/stdin\n"
    #expect(process.errors == text, "\(process.errors)")
    withExtendedLifetime(directory) {}
  }

  @Test func `a collector's URL with the path that is added is refused`() async throws {
    let (exit, lines) = try await check("lease: 30s", top: "tracing: {otlp: 'http://127.0.0.1:1/v1/traces'}")
    #expect(exit == .code(78))
    #expect(lines.map { $0.contains("4:17: tracing.otlp: must end before /v1/traces") } == [true], "\(lines)")
  }

  @Test func `what would run again, or be another client's, is warned of`() async throws {
    let (exit, lines) = try await check(
      "key: {from: ['header:Date']}\nmax_response_body: 0B\noutcomes: {unknown: [2xx]}",
      top: "admin: {address: '127.0.0.1:9000'}")
    #expect(exit == .code(0))
    let clauses = lines.map { line in String(line.prefix { $0 != "," }) }
    #expect(
      clauses == [
        "warning: FILE:2:12: upstreams: orders is the admin listener of this Semel",
        "warning: FILE:9:10: routes[0].key: takes keys from header:date",
        "warning: FILE:10:24: routes[0].max_response_body: keeps no response that has a body: the next delivery of a "
          + "request that has succeeded gets 409 response_not_kept in its place; write the size that responses have",
        "warning: FILE:11:15: routes[0].outcomes: counts success under unknown (200 and others): the next delivery of a "
          + "request that has succeeded gets 409 outcome_unknown in place of its response; take 2xx out of unknown",
      ], "\(lines)")
  }

  @Test func `retries without attempts and success that runs again are warned of`() async throws {
    let (exit, lines) = try await check("max_attempts: 1\nretries: {max: 2}\noutcomes: {retry: [2xx]}")
    #expect(exit == .code(0))
    #expect(
      lines.map { $0.prefix { $0 != "," } } == [
        "warning: FILE:10:14: routes[0].retries: has no effect",
        "warning: FILE:11:15: routes[0].outcomes: counts success under retry (200 and others): the record is released",
      ], "\(lines)")
  }
}
