import Foundation
import TestSupport
import Testing

/// The commands that the operator's manual shows, run as they stand there.
struct ManualTests {
  /// The commands of the shell block that follows a heading's remark on this test.
  private static func commands(under heading: String) throws -> [String] {
    let manual = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../deploy/README.md")
    let text = try String(contentsOf: manual.standardized, encoding: .utf8)
    let chapter = try #require(text.components(separatedBy: "\n## \(heading)\n").dropFirst().first)
    let part = try #require(
      chapter.components(separatedBy: "<!-- The test ManualTests runs these commands. -->\n```sh\n")
        .dropFirst()
        .first)
    let block = try #require(part.components(separatedBy: "\n```").first)
    return block.components(separatedBy: "\n")
  }

  /// Runs a line of the manual by a shell that finds `semel`, in a directory with its configuration.
  private func run(_ line: String, _ rig: Rig, in directory: TemporaryDirectory) async throws -> String {
    let process = try ManagedProcess(
      ["bash", "-c", "cd \(directory.path) && PATH=\(directory.path):$PATH && \(line)"],
      environment: ["SEMEL_ADMIN": rig.adminURL])
    let end = try await process.exit()
    #expect(end == .code(0), "\(line): \(process.output)\(process.errors)")
    return process.output
  }

  @Test func `a double charge is found by the commands of the manual`() async throws {
    let commands = try Self.commands(under: "A customer says that they were charged twice")
    #expect(commands.count == 4 && commands.allSatisfy { $0.hasPrefix("semel ") }, "\(commands)")
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      try FileManager.default.createSymbolicLink(
        atPath: directory.file("semel"), withDestinationPath: SemelProcess.binary)
      try rig.writeConfiguration(to: directory.file("semel.yaml"))
      expectExecuted(try await rig.order("order-1", caller: "Bearer old"))
      // The client retries with the token that it has got meanwhile.
      expectExecuted(try await rig.order("order-1", caller: "Bearer new"))
      let ids = rig.backend.requests.compactMap(\.requestID)
      let found = try await self.run(commands[0], rig, in: directory)
      #expect(ids.count == 2 && ids.allSatisfy { found.contains($0) }, "\(found)")
      #expect(found.contains("2 records of 2 callers"), "\(found)")
      let executed = try await self.run(commands[1], rig, in: directory).split(separator: "\n")
      #expect(executed.count == 2 && zip(executed, ids).allSatisfy { $0.hasSuffix($1) }, "\(executed)")
      let shown = try await self.run(commands[2].replacing("ID", with: ids[1]), rig, in: directory)
      #expect(shown.contains("gets the recorded response, 201"), "\(shown)")
      let explained = try await self.run(commands[3], rig, in: directory)
      #expect(explained.contains("header:authorization: present"), "\(explained)")
      #expect(explained.contains("record       \(ids[1])\n"), "\(explained)")
    }
  }
}
