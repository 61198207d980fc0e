/// The content of the file beside the database: the process that has it locked, for the message to a second one, and the
/// generation of attempt numbers, which would be lost with the database alone (`CopyMark`).
///
/// It is advice. An unreadable content, and that of an earlier version, which has no second line, counts as the first
/// generation.
struct LockNote: Equatable {
  /// The length that is read at most, in bytes. `text` is shorter.
  static let maxLength = 64

  /// The latest generation that the database has reached, or is about to begin.
  private(set) var generation = 0
  /// Whether no start has yet succeeded in the generation, so that the next one need not go beyond it.
  private(set) var isPending = false

  init() {}

  init(reached generation: Int) { self.generation = generation }

  /// Parses the content of the file.
  init(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let words: [Substring] = lines.count > 1 ? lines[1].split(separator: " ") : []
    guard words.count >= 2, words[0] == "generation", let number = Int(words[1]),
      (0...CopyMark.maxGeneration).contains(number)
    else { return }
    generation = number
    isPending = words.count > 2 && words[2] == "pending"
  }

  /// Takes the loss of the database, whose successor begins the next generation. A start that fails meanwhile, time and
  /// again, uses up one generation only.
  mutating func databaseIsGone() {
    if !isPending { generation = min(generation + 1, CopyMark.maxGeneration) }
    isPending = true
  }

  /// Returns the content of the file, with the owner in its first line.
  func text(owner: Int32) -> String {
    "\(owner)\ngeneration \(generation)\(isPending ? " pending" : "")\n"
  }
}
