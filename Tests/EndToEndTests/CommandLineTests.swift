import Foundation
import TestSupport
import Testing

/// `semel` on the command line.
struct CommandLineTests {
  private func semel(_ arguments: String...) async throws -> (
    exit: ManagedProcess.Exit, output: String, errors: String
  ) {
    let process = try ManagedProcess([SemelProcess.binary] + arguments)
    let exit = try await process.exit()
    return (exit, process.output, process.errors)
  }

  private func check(_ text: String) async throws -> (
    exit: ManagedProcess.Exit, output: String, errors: String
  ) {
    let directory = TemporaryDirectory()
    try text.write(toFile: directory.file("config.yaml"), atomically: true, encoding: .utf8)
    return try await semel("check", directory.file("config.yaml"))
  }

  @Test func `the version is printed`() async throws {
    let (exit, output, errors) = try await semel("--version")
    #expect(exit == .code(0))
    #expect(output.contains { $0.isNumber } && errors.isEmpty)
  }

  @Test(arguments: [
    [], ["run"], ["check"], ["demo"], ["health"], ["key"], ["key", "show"], ["key", "list"],
    ["key", "forget"],
    ["key", "resolve"], ["key", "find"], ["key", "put"], ["explain"], ["init"], ["tail"], ["store"],
    ["store", "stats"], ["store", "backup"], ["conformance"], ["openapi"],
  ])
  func `every command has help`(command: [String]) async throws {
    let process = try ManagedProcess([SemelProcess.binary] + command + ["--help"])
    #expect(try await process.exit() == .code(0))
    #expect(process.output.contains("USAGE: " + (["semel"] + command).joined(separator: " ")))
  }

  @Test(arguments: [
    ["fly"], ["run"], ["check"], ["run", "--fly"], ["check", "a", "b"], ["openapi", "a"], ["key", "show"],
    ["key", "show", "--id", "a", "--route", "b", "--key", "c"], ["key", "resolve", "--id", "a"],
    ["key", "find"], ["key", "put", "--applied", "--route", "a", "--key", "b"],
    ["key", "put", "--status", "201", "--route", "a", "--key", "b"],
    ["key", "resolve", "--not-applied", "--older-than", "1h"],
    ["key", "resolve", "--not-applied", "--older-than", "soon", "--route", "a"],
    ["key", "resolve", "--applied", "--status", "201", "--older-than", "1h", "--route", "a"],
    ["key", "resolve", "--not-applied", "--yes", "--id", "a"],
    ["key", "resolve", "--not-applied", "--attempt", "0", "--id", "a"],
    ["key", "resolve", "--not-applied", "--attempt", "1", "--older-than", "1h", "--route", "a"],
    ["key", "show", "--id", ""], ["key", "forget", "--id", ""], ["key", "show", "--id", "a"],
    ["key", "show", "--route", "a", "--key", ""], ["key", "find", "--key", ""],
    ["key", "find", "--key", "a", "--key-digest", "0a1b2c3d"], ["key", "find", "--key-digest", "0a1b2c3g"],
    ["key", "find", "--caller-digest", ""], ["key", "list", "--token-file", ""],
    ["key", "list", "--count", "--route", "a"], ["tail", "--admin", ""],
    ["key", "put", "--applied", "--status", "99", "--route", "a", "--key", "b"],
    ["key", "put", "--applied", "--status", "201", "--id", "a"], ["key", "put", "--stream", "--applied"],
    ["key", "resolve", "--not-applied", "--id", ""],
    ["key", "put", "--applied", "--status", "201", "--route", "a", "--key", "b", "-H", "X: 1", "-H", "x: 2"],
    ["explain", "a", "POST", "/b", "--address", "garbage"], ["explain", "a", "POST", "/b", "--address", ""],
    ["explain", "a", "POST", "/b", "--address", "192.0.2.1:80"], ["tail", "--outcome", "done"],
    ["explain", "a", "POST"], ["explain", "a", "POST", "/b", "-H", "c"], ["explain", "a", "POST\n", "/b"],
    ["explain", "a", "POST", "b"], ["explain", "a", "POST", "ftp://b/c"], ["explain", "a", "POST", ""],
    ["demo", "--port", "65536"], ["demo", "--port=-1"],
    ["demo", "--only-backend", "--backend-port", "99999"],
    ["store", "stats"], ["store", "backup", "a"], ["init", "a", "b"], ["tail", "--last=-1"],
    ["conformance"], ["conformance", "http://127.0.0.1/"],
  ])
  func `wrong usage ends with 2`(arguments: [String]) async throws {
    let process = try ManagedProcess([SemelProcess.binary] + arguments)
    #expect(try await process.exit() == .code(2))
    #expect(process.errors.contains("USAGE:") || process.errors.contains("Usage:"))
  }

  @Test func `an outcome that does not exist is an error with those that do`() async throws {
    let errors = try await semel("tail", "--outcome", "Executed").errors
    #expect(errors.contains("--outcome is one of executed, replayed,"), "\(errors)")
    #expect(errors.contains("not_stored") && errors.contains("lost"), "\(errors)")
  }

  @Test func `the sample configuration is good`() async throws {
    let sample = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../config.yaml").standardized
    let (exit, output, errors) = try await semel("check", sample.path)
    #expect(exit == .code(0), "\(output)\(errors)")
  }

  @Test(arguments: [(">/dev/full", 1), ("2>/dev/full", 0), (">&-", 0), ("2>&-", 0), (">&- 2>&- <&-", 0)])
  func `output that cannot be written is a failure, and missing streams are none`(
    redirection: String, exit: Int32
  ) async throws {
    let sample = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../config.yaml").standardized
    let process = try ManagedProcess([
      "bash", "-c", "exec \(SemelProcess.binary) check \(sample.path) \(redirection)",
    ])
    #expect(try await process.exit() == .code(exit), "\(process.output)\(process.errors)")
    #expect(process.errors.contains("the output cannot be written: No space left on device") == (exit == 1))
  }

  @Test(arguments: [["--version"], ["help", "check"], ["help", "conformance"], ["key", "put", "--help"]])
  func `help that cannot be written is a failure`(arguments: [String]) async throws {
    let process = try ManagedProcess(
      ["bash", "-c", "exec \"$0\" \"$@\" >/dev/full", SemelProcess.binary] + arguments)
    #expect(try await process.exit() == .code(1), "\(process.errors)")
    #expect(process.errors.contains("semel: the output cannot be written"), "\(process.errors)")
  }

  /// A reader that leaves while a text is written whose first part it has not taken yet.
  @Test func `a reader that leaves is no failure`() async throws {
    let script = "trap '' PIPE; exec 3> >(true); wait $!; \"$0\" help conformance >&3"
    let process = try ManagedProcess(["bash", "-c", script, SemelProcess.binary])
    #expect(try await process.exit() == .code(0), "\(process.errors)")
  }

  @Test func `help lists no option that is always refused`() async throws {
    let put = try await semel("help", "key", "put").output
    #expect(put.contains("--route <route>") && !put.contains("--id <id>"), "\(put)")
    #expect(try await semel("help", "key", "show").output.contains("--id <id>"))
  }

  @Test(arguments: [1, 2])
  func `a good configuration is summarised`(count: Int) async throws {
    let routes = (1...count).map { number in
      "{name: r\(number), match: {path: /\(number)}, upstream: u1, caller: {parts: [address]}}"
    }
    let upstreams = (1...count).map { "u\($0): {url: 'http://127.0.0.1:900\($0)'}" }
    let (exit, output, errors) = try await check(
      """
      listen: [{address: 127.0.0.1:8080}]
      upstreams: {\(upstreams.joined(separator: ", "))}
      store: {kind: embedded, path: semel.db}
      routes: [\(routes.joined(separator: ", "))]
      """)
    #expect(exit == .code(0), "\(errors)")
    let summary = count == 1 ? "1 route, 1 upstream" : "2 routes, 2 upstreams"
    #expect(output.hasSuffix("config.yaml: good: \(summary)\n"), "\(output)")
  }

  @Test func `a bad configuration ends with 78 and all its errors`() async throws {
    let (exit, output, errors) = try await check(
      """
      listen: [{address: 127.0.0.1:8080}]
      colour: red
      upstreams: {orders: {url: "http://127.0.0.1:9000", connect_timeout: soon}}
      store: {kind: embedded, path: semel.db}
      routes:
        - name: orders
          match: {path: /v1/**}
          caller: {parts: ["header:Authorization"]}
          lease: 30
          duplicates: maybe
        - name: other
          match: {path: /v2/**}
      """)
    #expect(exit == .code(78))
    for expected in [
      "config.yaml:2:1: colour:", "config.yaml:3:", "upstreams.orders.connect_timeout:", "config.yaml:9:",
      "routes[0].lease:", "config.yaml:10:", "routes[0].duplicates:", "routes[1]",
    ] {
      #expect((output + errors).contains(expected), "\(expected) in \(output)\(errors)")
    }
  }

  @Test func `no process runs on a bad configuration or none`() async throws {
    let directory = TemporaryDirectory()
    try "listen: 5\n".write(toFile: directory.file("bad.yaml"), atomically: true, encoding: .utf8)
    #expect(try await semel("run", "--config", directory.file("bad.yaml")).exit == .code(78))
    #expect(try await semel("check", directory.file("none.yaml")).exit != .code(0))
    #expect(try await semel("run", "--config", directory.file("none.yaml")).exit != .code(0))
  }

  @Test func `a configuration file is given once, with or without its option`() async throws {
    let directory = TemporaryDirectory()
    try "listen: 5\n".write(toFile: directory.file("bad.yaml"), atomically: true, encoding: .utf8)
    let bad = directory.file("bad.yaml")
    #expect(try await semel("run", bad).exit == .code(78))
    #expect(try await semel("run").exit == .code(2))
    let twice = try await semel("run", bad, "--config", bad)
    #expect(twice.exit == .code(2) && twice.errors.contains("give one configuration file"), "\(twice.errors)")
  }

  @Test func `a secret that cannot be read is reported with its reason`() async throws {
    let directory = TemporaryDirectory()
    try "".write(toFile: directory.file("empty"), atomically: true, encoding: .utf8)
    for (name, reason) in [
      ("none", "does not exist"), ("", "cannot be read: Is a directory"), ("empty", "holds no secret"),
    ] {
      let token = name.isEmpty ? directory.file("") : directory.file(name)
      let (exit, _, errors) = try await semel("key", "list", "--token-file", token)
      #expect(exit == .code(78))
      #expect(errors.contains(reason), "\(errors)")
      let checked = try await check(
        """
        listen: [{address: 127.0.0.1:8080}]
        upstreams: {orders: {url: "http://127.0.0.1:9000"}}
        store: {kind: embedded, path: semel.db, id_secret_file: '\(token)'}
        routes: [{name: orders, match: {path: /v1/**}, caller: {parts: [address]}}]
        """)
      #expect(checked.exit == .code(78))
      #expect((checked.output + checked.errors).contains(reason), "\(checked.errors)")
    }
  }

  @Test func `an address that is in use is reported`() async throws {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      try """
      listen: [{address: '127.0.0.1:\(rig.semel.ports.proxy)'}]
      admin: {address: '127.0.0.1:\(FreePort.find())'}
      upstreams: {orders: {url: 'http://127.0.0.1:1'}}
      store: {kind: embedded, path: \(directory.file("semel.db"))}
      routes: [{name: orders, match: {path: /v1/**}, caller: {parts: [address]}}]
      """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
      let (exit, output, errors) = try await self.semel("run", "--config", directory.file("semel.yaml"))
      #expect(exit == .code(1))
      #expect((output + errors).contains("\(rig.semel.ports.proxy)"))
    }
  }

  @Test(arguments: ["listen", "admin"])
  func `a listener whose host has no address is named, with what to write`(member: String) async throws {
    let directory = TemporaryDirectory()
    try String(repeating: "t", count: 32).write(
      toFile: directory.file("token"), atomically: true, encoding: .utf8)
    let ports = (FreePort.find(), FreePort.find())
    let text = """
      listen: [{address: '127.0.0.1:\(ports.0)'}]
      admin: {address: '127.0.0.1:\(ports.1)', token_file: \(directory.file("token"))}
      upstreams: {orders: {url: 'http://127.0.0.1:1'}}
      store: {kind: embedded, path: \(directory.file("semel.db"))}
      routes: [{name: orders, match: {path: /v1/**}, caller: {parts: [address]}}]
      """
    let port = member == "listen" ? ports.0 : ports.1
    try text.replacing("127.0.0.1:\(port)", with: "none.invalid:\(port)").write(
      toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let (exit, output, errors) = try await semel("run", "--config", directory.file("semel.yaml"))
    #expect(exit == .code(1))
    let place = member == "listen" ? "listen[0].address" : "admin.address"
    let start =
      "cannot listen on none.invalid:\(port) (\(place)): this machine finds no address of that name ("
    #expect(errors.contains("semel: " + start) && output.contains(start), "\(output)\(errors)")
    #expect(errors.contains("write an address of its own, such as 127.0.0.1"), "\(errors)")
    #expect(!(output + errors).contains("SocketAddressError"), "\(output)\(errors)")
  }

  @Test func `a second process on the same embedded store is refused`() async throws {
    try await Rig.run { rig in
      let path = try #require(rig.storePath)
      let directory = TemporaryDirectory()
      try """
      listen: [{address: '127.0.0.1:\(FreePort.find())'}]
      admin: {address: '127.0.0.1:\(FreePort.find())'}
      upstreams: {orders: {url: 'http://127.0.0.1:1'}}
      store: {kind: embedded, path: \(path)}
      routes: [{name: orders, match: {path: /v1/**}, caller: {parts: [address]}}]
      """.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
      let (exit, output, errors) = try await self.semel("run", "--config", directory.file("semel.yaml"))
      #expect(exit == .code(1))
      #expect((output + errors).contains(path))
      expectExecuted(try await rig.order("k"))
    }
  }
}
