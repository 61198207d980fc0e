/// The conditions that cases are made of.
extension Evidence {
  func ran(_ expected: Int) -> Finding {
    switch executions {
    case .unknown:
      return .undecided(
        oracleFault.map { "the oracle of executions: \($0)" } ?? "the executions are not known")
    case .exactly(let count):
      return count == expected ? .met(Self.times(count)) : .violated(Self.times(count, instead: expected))
    case .atLeast(let count) where count > expected:
      return .violated(Self.times(count, instead: expected))
    case .atLeast(let count) where count == expected && responses.count == exchanges.count:
      guard responses.allSatisfy(\.isSuccess) else { fallthrough }
      return .met("\(Self.times(count)), by the ids in the responses")
    case .atLeast:
      return .undecided("the ids in responses do not show executions without a response of their own")
    }
  }

  static func times(_ count: Int, instead expected: Int? = nil) -> String {
    let words = ["not run", "run once", "run twice"]
    let text = count < words.count ? words[count] : "run \(count) times"
    guard let expected else { return text }
    return "\(text) instead of \(expected == 0 ? "not at all" : expected == 1 ? "once" : "\(expected) times")"
  }

  func absence(_ number: Int) -> String {
    guard exchanges.indices.contains(number) else { return "delivery \(number + 1) was not sent" }
    switch exchanges[number].outcome {
    case .none(let reason), .endless(let reason): return "delivery \(number + 1): \(reason)"
    case .abandoned, .response: return "delivery \(number + 1) has no response"
    }
  }

  /// A delivery without a response: the end of its connection refuses it, too; an endless response decides nothing.
  func refusedByClosing(_ number: Int) -> Finding {
    if exchanges.indices.contains(number), case .endless = exchanges[number].outcome {
      return .undecided(absence(number))
    }
    return .met("the connection was closed")
  }

  func succeeded(_ number: Int) -> Finding {
    guard let response = self[number] else { return .undecided(absence(number)) }
    return response.isSuccess ? .met("\(response.status)") : .violated("refused with \(response.status)")
  }

  func refused(_ number: Int) -> Finding {
    guard let response = self[number] else { return .undecided(absence(number)) }
    if response.isRefusal { return .met("\(response.status)") }
    if response.isServerError { return .violated("failed with \(response.status)") }
    let isOld = number > 0 && self[0]?.hasSameResult(as: response) == true && isReplay(number) == true
    return .violated(
      isOld
        ? "the response to the first delivery was given (\(response.status))"
        : "accepted (\(response.status))")
  }

  func refused(_ number: Int, with statuses: Set<Int>) -> Finding {
    let refusal = refused(number)
    guard case .met = refusal, let response = self[number] else { return refusal }
    let expected = statuses.sorted().map(String.init).joined(separator: " or ")
    return statuses.contains(response.status)
      ? refusal : .violated("refused with \(response.status) instead of \(expected)")
  }

  func described(_ number: Int) -> Finding {
    guard let response = self[number] else { return .undecided(absence(number)) }
    guard response.isRefusal else { return .undecided("not refused (\(response.status))") }
    if response.isDescribed { return .met(response.mediaType ?? "") }
    return .violated("the \(response.status) is no problem document, and has no link to the documentation")
  }

  /// Checks that two deliveries got the same result: status, and body byte for byte.
  func sameResult(_ first: Int, _ second: Int, runs: Int = 1) -> Finding {
    guard let old = self[first] else { return .undecided(absence(first)) }
    guard let new = self[second] else { return .undecided(absence(second)) }
    if old.status != new.status { return .violated("\(old.status), then \(new.status)") }
    if old.body != new.body { return .violated("\(new.status) with another body") }
    return mayHaveRunAgain(runs: runs) ? alike : .met("\(new.status)")
  }

  /// Checks that the second delivery was treated as a retry of the first one, or is known not to have run.
  func retried(runs: Int = 1) -> Finding {
    let same = sameResult(0, 1, runs: runs)
    guard self[1]?.isSuccess == true, executions != .unknown else { return same }
    let isReplay = isReplay(1, runs: runs)
    if isReplay == true, case .violated = same { return .observed("the same request, another response") }
    if isReplay == false, case .violated(let times) = ran(runs) { return .violated(times) }
    return same
  }

  /// Checks that two equal deliveries with this form of a key were treated as one intent, or refused.
  ///
  /// - Parameters:
  ///   - taken: The finding on an endpoint that takes the form as a key.
  ///   - isFresh: Whether no request of this run or of an earlier one can have had the key.
  func oneIntentOrRefused(taken: Finding = .met("taken as a key"), isFresh: Bool = true) -> Finding {
    for number in exchanges.indices {
      if let response = self[number], response.isServerError {
        return .violated("failed with \(response.status)")
      }
      if case .endless = exchanges[number].outcome { return .undecided(absence(number)) }
    }
    let accepting = exchanges.indices.filter { self[$0]?.isSuccess == true }
    if accepting.isEmpty {
      return .met(self[0].map { "refused with \($0.status)" } ?? "the connection was closed")
    }
    guard accepting.count == exchanges.count else {
      return .violated("one of two equal deliveries was refused")
    }
    if executions == .exactly(0) {
      return isFresh ? .violated("accepted, but not run") : .observed("taken as a key that was used before")
    }
    if case .violated(let times) = ran(1) { return .violated("the key was ignored: \(times)") }
    let same = sameResult(0, 1)
    if case .violated = same {
      guard case .met = ran(1) else { return .violated("the key was ignored: two different results") }
    }
    // An acceptance that is a violation needs no proof of a replay.
    if case .violated = taken { return taken }
    switch same {
    case .violated: return .observed("taken as a key, with another response")
    case .undecided: return same
    case .met, .observed: return taken
    }
  }

  /// Checks that two keys were treated as two; an endpoint may refuse the form of the first one.
  func twoIntents() -> Finding {
    guard let first = self[0] else { return refusedByClosing(0) }
    guard let second = self[1] else { return .undecided(absence(1)) }
    guard first.isSuccess else { return .met("refused with \(first.status)") }
    guard second.isSuccess else { return .violated("the second key is refused with \(second.status)") }
    switch executions {
    case .exactly, .atLeast(2...): return ran(2)
    case .atLeast: return .violated("the second key got the first one's result")
    case .unknown:
      return first.hasSameResult(as: second) ? .undecided("both have the same result") : .met()
    }
  }

  func treatmentOfSpelling() -> Finding {
    guard let first = self[0] else { return .undecided(absence(0)) }
    guard let second = self[1] else { return .undecided(absence(1)) }
    guard first.isSuccess else { return .undecided("the first delivery was refused with \(first.status)") }
    if second.isServerError { return .violated("failed with \(second.status)") }
    if second.isRefusal { return .observed("distinguished: refused with \(second.status)") }
    if case .violated(let times) = ran(1) { return .violated(times) }
    if first.hasSameResult(as: second) { return mayHaveRunAgain() ? alike : .observed("the same payload") }
    if case .met = ran(1) { return .observed("the same payload, another response") }
    return .violated("another result under the same key")
  }

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

  /// Whether equal results can be those of two runs: other keys get the same one, and no oracle shows one run.
  func mayHaveRunAgain(runs: Int = 1) -> Bool { keysShareResults && executions != .exactly(runs) }

  /// The finding where equal results decide nothing.
  var alike: Finding {
    if case .exactly(let count) = executions {
      return .undecided("\(Self.times(count)), with equal results")
    }
    return .undecided("another key has the same result: only an oracle of executions can tell")
  }
}
