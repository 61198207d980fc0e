import Foundation
import TestSupport
import Testing

/// `semel init`: a configuration to start from.
struct InitTests {
  private func semel(_ arguments: String...) async throws -> (exit: ManagedProcess.Exit, text: String) {
    let process = try ManagedProcess([SemelProcess.binary] + arguments)
    return (try await process.exit(), process.output + process.errors)
  }

  @Test(arguments: ["embedded", "redis://127.0.0.1:6379/0"])
  func `the file is good, and says what to do next`(store: String) async throws {
    let directory = TemporaryDirectory()
    let file = directory.file("semel.yaml")
    let made = try await semel(
      "init", file, "--upstream", "http://127.0.0.1:3000", "--store", store, "--path", "/v1/**")
    #expect(made.exit == .code(0), "\(made.text)")
    #expect(made.text.contains("semel run \(file)"))
    let text = try String(contentsOfFile: file, encoding: .utf8)
    #expect(text.contains(#"url: "http://127.0.0.1:3000""#) && text.contains("# for clients"))
    let checked = try await semel("check", file)
    #expect(checked.exit == .code(0), "\(checked.text)")
    let explained = try await semel(
      "explain", file, "POST", "/v1/orders", "-H", "Authorization: Bearer alice", "-H",
      "Idempotency-Key: order-1")
    #expect(explained.exit == .code(0) && explained.text.contains("writes  takes it"), "\(explained.text)")
  }

  @Test(arguments: [("redis://semel:word@127.0.0.1:6379/0", true), ("redis://127.0.0.1:6379/0", false)])
  func `a file with the store's password is for its owner alone`(store: String, isPrivate: Bool) async throws
  {
    let directory = TemporaryDirectory()
    let file = directory.file("semel.yaml")
    let made = try await semel("init", file, "--store", store)
    #expect(made.exit == .code(0), "\(made.text)")
    #expect(made.text.contains("only you can read it") == isPrivate, "\(made.text)")
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(try #require(mode) & 0o077 == 0 || !isPrivate)
    #expect(try #require(mode) & 0o044 != 0 || isPrivate)
  }

  @Test func `dollar signs of an option are kept`() async throws {
    let directory = TemporaryDirectory()
    let file = directory.file("semel.yaml")
    let made = try await semel(
      "init", file, "--store", "redis://:pa$$wo$$$rd$x@127.0.0.1:6379/0", "--path", "/v1/a$$b$$$c$d")
    #expect(made.exit == .code(0), "\(made.text)")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    #expect(text.contains(#"url: "redis://:pa$$$$wo$$$$$rd$x@127.0.0.1:6379/0""#), "\(text)")
    let explained = try await semel(
      "explain", file, "POST", "/v1/a$$b$$$c$d", "-H", "Authorization: Bearer alice", "-H",
      "Idempotency-Key: order-1")
    #expect(explained.exit == .code(0) && explained.text.contains("writes  takes it"), "\(explained.text)")
  }

  @Test(arguments: ["a b'c.yaml", "-x.yaml", "$HOME.yaml", "plain.yaml"])
  func `the next commands run as they are printed`(name: String) async throws {
    let directory = TemporaryDirectory()
    func run(_ command: String) async throws -> ManagedProcess {
      let process = try ManagedProcess(
        ["sh", "-c", #"cd "$1" && "$0" \#(command)"#, SemelProcess.binary, directory.path, name])
      #expect(try await process.exit() == .code(0), "\(command): \(process.output)\(process.errors)")
      return process
    }
    let made = try await run(#"init -- "$2""#)
    let commands = made.output.split(separator: "\n").filter {
      $0.hasPrefix("  semel check ") || $0.hasPrefix("  semel explain ")
    }
    #expect(commands.count == 2, "\(made.output)")
    for command in commands { _ = try await run(String(command.dropFirst("  semel ".count))) }
  }

  @Test func `a file that exists is left as it is`() async throws {
    let directory = TemporaryDirectory()
    let file = directory.file("semel.yaml")
    try "mine".write(toFile: file, atomically: true, encoding: .utf8)
    let refused = try await semel("init", file)
    #expect(refused.exit == .code(1) && refused.text.contains("exists"), "\(refused.text)")
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
  }

  @Test func `a bad URL is refused before anything is written`() async throws {
    let directory = TemporaryDirectory()
    let refused = try await semel("init", directory.file("semel.yaml"), "--upstream", "ftp://a")
    #expect(refused.exit == .code(78) && refused.text.hasPrefix("semel: --upstream: "), "\(refused.text)")
    #expect(!FileManager.default.fileExists(atPath: directory.file("semel.yaml")))
  }

  @Test func `a process runs on it`() async throws {
    let directory = TemporaryDirectory()
    let file = directory.file("semel.yaml")
    let backend = OrdersBackend()
    try await backend.start()
    _ = try await semel("init", file, "--upstream", "http://127.0.0.1:\(backend.port)")
    let ports = SemelProcess.Ports()
    let text = try String(contentsOfFile: file, encoding: .utf8)
      .replacing("127.0.0.1:8080", with: "127.0.0.1:\(ports.proxy)")
      .replacing("127.0.0.1:8081", with: "127.0.0.1:\(ports.admin)")
      .replacing("path: semel.db", with: "path: \(directory.file("semel.db"))")
      .replacing(", token_file: semel.token", with: "")
    try await Rig.withSlots {
      let process = try await SemelProcess(ports: ports, configuration: text)
      let fields = Rig.fields(key: "k")
      expectExecuted(try await process.client.send("POST", "/v1/orders", fields, body: "{}"))
      expectReplayed(try await process.client.send("POST", "/v1/orders", fields, body: "{}"), 201)
      try await process.kill()
    }
    try await backend.stop()
  }
}
