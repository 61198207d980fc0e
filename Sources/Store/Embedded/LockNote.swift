/// The content of the file beside the database: the process that has it locked, for the message to a second one, and
/// the point that the database has reached, by which a start knows one that was lost or is older.
///
/// It is advice. An unreadable content, and that of an earlier version, which has no second line, notes nothing.
enum LockNote: Equatable {
  /// The length that is read at most, in bytes. `text` is shorter.
  static let maxLength = 96

  /// No start has ever succeeded, so that there is no database to be missed.
  case new
  /// There may be a database, of which nothing is known.
  case unknown
  case reached(FileProgress)

  /// The point that the database has reached; `nil` if none is known.
  var progress: FileProgress? {
    guard case .reached(let progress) = self else { return nil }
    return progress
  }

  /// Parses the content of the file. Earlier versions read the lines before `start` alone.
  init(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
      .map { $0.split(separator: " ") }
    guard lines.first != ["new"] else {
      self = .new
      return
    }
    guard let words = lines.first, words.count >= 2, words[0] == "generation",
      let generation = Int(words[1]), (0...FileProgress.maxGeneration).contains(generation)
    else {
      self = .unknown
      return
    }
    self = .reached(
      FileProgress(
        generation: generation, start: Self.number("start", in: lines.dropFirst(2).first),
        latest: Self.number("latest", in: lines.dropFirst().first)))
  }

  /// The number of a line of two words; 0 if it is another line.
  private static func number(_ name: String, in words: [Substring]?) -> Int64 {
    guard let words, words.count == 2, words[0] == name else { return 0 }
    return max(Int64(words[1]) ?? 0, 0)
  }

  /// Returns the content of the file, with the owner in its first line.
  func text(owner: Int32) -> String {
    switch self {
    case .new: "\(owner)\nnew\n"
    case .unknown: "\(owner)\n"
    case .reached(let progress):
      "\(owner)\ngeneration \(progress.generation)\nlatest \(progress.latest)\nstart \(progress.start)\n"
    }
  }
}
