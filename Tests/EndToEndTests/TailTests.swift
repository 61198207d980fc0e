import Foundation
import TestSupport
import Testing

/// `semel tail`: what happens, as it happens.
struct TailTests {
  private func tail(_ rig: Rig, _ arguments: [String]) throws -> ManagedProcess {
    try ManagedProcess([SemelProcess.binary, "tail", "--admin", rig.adminURL] + arguments)
  }

  @Test(arguments: StoreKind.allCases)
  func `requests are followed as they end`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("before"))
      let tail = try tail(rig, [])
      try await tail.line(containing: " executed ")
      // The cache of Redis begins with its subscription.
      repeat {
        expectReplayed(try await rig.order("before"), 201)
      } while try await rig.semel.counter("semel_cache_hits_total") == 0
      let line = try await tail.line(containing: "from=cache")
      let id = try #require(rig.backend.requests[0].requestID)
      for part in [
        " replayed ", " POST ", " orders ", " 201 ", "attempt=1", "key=", "caller=", "record=\(id)",
      ] {
        #expect(line.contains(part), "\(part) in \(line)")
      }
      rig.backend.on("/v1/orders") { _ in .unanswered }
      _ = try await rig.order("lost")
      try await tail.line(containing: "cause=connection_lost")
      _ = try await rig.order(nil)
      try await tail.line(containing: "reason=key_missing")
      // Neither the key nor the caller.
      #expect(!tail.output.contains("before") && !tail.output.contains("alice"), "\(tail.output)")
      try await tail.kill()
    }
  }

  @Test func `statuses have colours on a terminal alone, and with NO_COLOR on none`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k"))
      let command = [SemelProcess.binary, "tail", "--no-follow", "--admin", rig.adminURL]
      for (setting, isColoured) in [("", true), ("1", false)] {
        let process = try Python.startOnTerminal(command, noColour: setting)
        #expect(try await process.exit() == .code(0), "\(process.errors)")
        #expect(process.output.contains("\u{1B}[32m201\u{1B}[0m") == isColoured, "\(process.output)")
        #expect(process.output.contains("201"))
      }
      let piped = try await rig.command(Array(command.dropFirst()))
      #expect(piped.output.contains(" 201 ") && !piped.output.contains("\u{1B}"))
    }
  }

  @Test func `requests of a shadowed route are shown with what would have been`() async throws {
    try await Rig.run(Configuration(top: ["workers": "1"], route: ["shadow": "true"])) { rig in
      _ = try await rig.order("k")
      _ = try await rig.order("k") { $0.idempotencyStatus == "shadow; would=replayed" }
      _ = try await rig.order("k", body: #"{"amount":1}"#)
      // The log's entry comes after that of the journal, and both after the response.
      try await rig.semel.process.line(containing: #""would":"payload_mismatch""#)
      let tail = try tail(rig, ["--no-follow", "--last", "100"])
      #expect(try await tail.exit() == .code(0))
      let last = try #require(tail.output.split(separator: "\n").last)
      for part in [" POST ", " orders ", " 201 ", "would=payload_mismatch", "key=", "caller="] {
        #expect(last.contains(part), "\(part) in \(last)")
      }
      #expect(tail.output.contains("would=executed") && !tail.output.contains("alice"), "\(tail.output)")
    }
  }

  @Test func `what there is can be printed, filtered and as JSON`() async throws {
    try await Rig.run(Configuration(top: ["workers": "1"])) { rig in
      for key in ["a", "b", "c"] { expectExecuted(try await rig.order(key)) }
      expectReplayed(try await rig.order("a"), 201)
      _ = try await rig.semel.requests(atLeast: 4)
      let all = try tail(rig, ["--no-follow"])
      #expect(try await all.exit() == .code(0))
      #expect(all.output.split(separator: "\n").count == 4, "\(all.output)")
      let last = try tail(rig, ["--no-follow", "--last", "2", "--json"])
      try await last.exit()
      #expect(last.output.split(separator: "\n").count == 2, "\(last.output)")
      #expect(last.output.contains(#""outcome":"replayed""#) && last.output.contains(#""source":"cache""#))
      let replayed = try tail(rig, ["--no-follow", "--outcome", "replayed", "--route", "orders"])
      try await replayed.exit()
      #expect(replayed.output.split(separator: "\n").count == 1, "\(replayed.output)")
      // Of the wanted ones, which are not the last.
      let executed = try tail(rig, ["--no-follow", "--last", "1", "--outcome", "executed"])
      try await executed.exit()
      #expect(executed.output.split(separator: "\n").count == 1, "\(executed.output)")
    }
  }

  @Test func `whoever follows ends with the reader of what it prints`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("a"))
      let command = #"'\#(SemelProcess.binary)' tail --admin '\#(rig.adminURL)'; echo "ended: $?" >&2"#
      let shell = try ManagedProcess(["/bin/sh", "-c", "{ \(command); } | head -n 1"])
      #expect(try await shell.exit() == .code(0))
      #expect(shell.output.split(separator: "\n").count == 1, "\(shell.output)")
      #expect(shell.errors.contains("ended: 0"), "\(shell.errors)")
    }
  }

  @Test(arguments: [[], ["--no-follow"], ["--route", "orders"]])
  func `output that cannot be written ends the command with 1`(arguments: [String]) async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("a"))
      _ = try await rig.semel.requests(atLeast: 1)
      let words = [SemelProcess.binary, "tail", "--admin", rig.adminURL] + arguments
      let shell = try ManagedProcess(["/bin/sh", "-c", #"exec "$0" "$@" > /dev/full"#] + words)
      #expect(try await shell.exit() == .code(1))
      #expect(
        shell.errors == "semel: the output cannot be written: No space left on device\n", "\(shell.errors)")
    }
  }

  @Test func `a stop does not wait for those who follow`() async throws {
    try await Rig.run { rig in
      let tail = try tail(rig, [])
      expectExecuted(try await rig.order("a"))
      try await tail.line(containing: " executed ")
      rig.semel.terminate()
      #expect(try await rig.semel.process.exit() == .code(0))
      #expect(try await tail.exit() == .code(1))
    }
  }
}
