enum Suggestion {
  /// The nearest word; `nil` unless at most a third of its letters differ, and three at most. One may always differ.
  static func nearest(to word: String, in words: [String]) -> String? {
    let wanted = plain(word)
    let near = words.map { (word: $0, distance: distance(wanted, plain($0))) }
      .filter { $0.distance <= min(3, max(1, $0.word.count / 3)) }
    return near.min { $0.distance < $1.distance }?.word
  }

  /// The letters of a word, without its letter case and separators: `maxWaiters` and `max-waiters` equal `max_waiters`.
  private static func plain(_ word: String) -> [Character] {
    word.lowercased().filter { $0 != "_" && $0 != "-" && $0 != "." }.map(\.self)
  }

  /// The minimum number of insertions, deletions, changes and swaps of neighbours that turn one word into the other.
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    // The names of all settings are much shorter, and the table is quadratic.
    guard !left.isEmpty, !right.isEmpty, left.count <= 64 else { return max(left.count, right.count) }
    var rows = [Array(0...right.count)]
    for (i, letter) in left.enumerated() {
      var row = [i + 1]
      for (j, other) in right.enumerated() {
        var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == other ? 0 : 1))
        if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
          best = min(best, rows[i - 1][j - 1] + 1)
        }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }
}
