/// The content of the file beside the database: the process that has it locked, for the message to a second one, and
/// what would be lost with the database alone: the generation of attempt numbers (`FileGeneration`), and how recent the
/// database was.
///
/// It is advice. An unreadable content, and that of an earlier version, which has no second line, counts as the first
/// generation.
struct LockNote: Equatable {
  /// The length that is read at most, in bytes. `text` is shorter.
  static let maxLength = 96

  /// The latest generation that the database has reached.
  private(set) var generation = 0
  /// Whether no start has ever succeeded, so that there is no database to be missed.
  private(set) var isNew = false
  /// A time of its last change that the database has reached, in milliseconds since 1970; 0 if none is known.
  var latest: Int64 = 0

  init() {}

  /// The content before the first start has succeeded.
  static let new = {
    var note = LockNote()
    note.isNew = true
    return note
  }()

  init(reached generation: Int, latest: Int64 = 0) {
    self.generation = generation
    self.latest = latest
  }

  /// Parses the content of the file.
  init(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let words: [Substring] = lines.count > 1 ? lines[1].split(separator: " ") : []
    isNew = words == ["new"]
    guard words.count >= 2, words[0] == "generation", let number = Int(words[1]),
      (0...FileGeneration.max).contains(number)
    else { return }
    generation = number
    let change = lines[2...].first?.split(separator: " ") ?? []
    if change.count == 2, change[0] == "latest", let time = Int64(change[1]) { latest = max(time, 0) }
  }

  /// Returns the content of the file, with the owner in its first line.
  func text(owner: Int32) -> String {
    guard !isNew else { return "\(owner)\nnew\n" }
    return "\(owner)\ngeneration \(generation)\n" + (latest > 0 ? "latest \(latest)\n" : "")
  }
}
