/// The proof that a delivery did not run.
extension Evidence {
  /// Whether an accepted delivery was not run, and stands for the first one: by the executions where they are known,
  /// else by its result; `nil` if neither tells.
  ///
  /// - Parameter runs: The number of the script's executions if it did not run.
  func isReplay(_ number: Int, runs: Int = 1) -> Bool? {
    guard let first = self[0], let other = self[number] else { return nil }
    switch executions {
    case .exactly(let count) where count >= runs: return count == runs
    case .atLeast(let count) where count >= runs: return count == runs
    case .exactly, .atLeast, .unknown:
      guard other.hasSameResult(as: first) else { return false }
      return keysShareResults ? nil : true
    }
  }

  /// Whether equal results can be those of two runs: other keys get the same one, and no oracle shows that there was no
  /// second run.
  ///
  /// - Parameter runs: The number of the script's executions if there was none.
  func mayHaveRunAgain(runs: Int = 1) -> Bool { keysShareResults && executions != .exactly(runs) }

  /// The finding where equal results decide nothing.
  var alike: Finding {
    if case .exactly(let count) = executions {
      return .undecided("\(Self.times(count)), with equal results")
    }
    return .undecided("another key has the same result: only an oracle of executions can tell")
  }
}
