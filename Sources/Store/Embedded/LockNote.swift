/// The content of the file beside the database: its owner, and the point that the database has reached, by which a
/// start knows one that was lost or is older. Unreadable content and that of an earlier version note nothing.
enum LockNote: Equatable {
  static let maxLength = 96

  /// No start has ever succeeded.
  case new
  /// There may be a database, of which nothing is known.
  case unknown
  case reached(FileProgress)

  var progress: FileProgress? {
    guard case .reached(let progress) = self else { return nil }
    return progress
  }

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

  private static func number(_ name: String, in words: [Substring]?) -> Int64 {
    guard let words, words.count == 2, words[0] == name else { return 0 }
    return max(Int64(words[1]) ?? 0, 0)
  }

  func text(owner: Int32) -> String {
    switch self {
    case .new: "\(owner)\nnew\n"
    case .unknown: "\(owner)\n"
    case .reached(let progress):
      "\(owner)\ngeneration \(progress.generation)\nlatest \(progress.latest)\nstart \(progress.start)\n"
    }
  }
}
