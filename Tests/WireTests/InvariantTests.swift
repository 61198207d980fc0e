import Testing
import Wire

/// The end of a process whose state must not be.
struct InvariantTests {
  @Test func `a broken invariant ends the process, with its message and its place`() async throws {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      invariant(CommandLine.arguments.isEmpty, "a program without a name")
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.contains("semel: invariant broken: a program without a name"))
    #expect(text.contains("WireTests/InvariantTests.swift:"))
  }

  @Test func `a condition is looked at once, and one that holds changes nothing`() {
    var looks = 0
    func look() -> Bool {
      looks += 1
      return true
    }
    invariant(look(), "a look that fails")
    #expect(looks == 1)
  }
}
