import Settings
import Testing

/// The sample, damaged in many ways: whatever is wrong with a file is told with a place that the file has.
struct DamageTests {
  private let lines = Sample.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)

  private func expectPlaces(_ lines: [String]) {
    let result = Settings.load(text: lines.joined(separator: "\n"), file: "f", environment: [:])
    guard case .failure(let errors) = result else { return }
    #expect(!errors.issues.isEmpty)
    for issue in errors.issues {
      #expect((1...lines.count + 1).contains(issue.line))
      let width = issue.line <= lines.count ? lines[issue.line - 1].unicodeScalars.count : 0
      #expect((1...width + 1).contains(issue.column))
      #expect(!issue.message.isEmpty)
    }
    let places = errors.issues.map { [$0.line, $0.column] }
    #expect(places == places.sorted { $0.lexicographicallyPrecedes($1) })
  }

  @Test func `a file that is cut short`() {
    for count in 1..<lines.count { expectPlaces(Array(lines.prefix(count))) }
  }

  @Test func `a file that lacks a line, or has one twice`() {
    for index in lines.indices {
      expectPlaces(Array(lines[..<index] + lines[(index + 1)...]))
      expectPlaces(Array(lines[...index] + lines[index...]))
    }
  }

  @Test(arguments: [
    "{", "}", "[", "]", ":", ",", "\"", "'", "&a ", "*a", "!", "|", ">", "%", "@", "\t", "${", "\u{0}", "é",
  ])
  func `a file with a stray character`(character: String) {
    for index in lines.indices where !lines[index].isEmpty {
      var damaged = lines
      let middle = damaged[index].index(damaged[index].startIndex, offsetBy: damaged[index].count / 3)
      damaged[index].insert(contentsOf: character, at: middle)
      expectPlaces(damaged)
    }
  }
}
