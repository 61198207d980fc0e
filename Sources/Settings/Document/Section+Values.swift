import Idempotency

extension Section {
  /// Whether each of these members is either absent or read without an error.
  func isSound(_ names: String...) -> Bool {
    names.allSatisfy { !(self[$0]?.hasFault ?? false) }
  }

  func integer(_ name: String, into target: inout Int, in range: ClosedRange<Int>) {
    let parsed = member(name)?.parsed("a whole number") { text throws(Refusal) in
      let isNumber = !text.isEmpty && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
      guard isNumber, let number = Int(text), range.contains(number) else {
        throw Refusal("must be a whole number from \(range.lowerBound) to \(range.upperBound)")
      }
      return number
    }
    if let parsed { target = parsed }
  }

  /// Reads a limit, of which 0 means that there is none.
  func limit(_ name: String, into target: inout Int?, atMost max: Int) {
    var number = target ?? 0
    integer(name, into: &number, in: 0...max)
    target = number == 0 ? nil : number
  }

  func duration(
    _ name: String, into target: inout Milliseconds, atLeast min: Milliseconds = 0,
    atMost max: Milliseconds = TimeSpan.max
  ) {
    let parsed = member(name)?.parsed("a duration such as 30s") { text throws(Refusal) in
      let span = try TimeSpan.parse(text)
      guard span >= min else { throw Refusal("must be at least \(TimeSpan.text(min))") }
      guard span <= max else { throw Refusal("must be at most \(TimeSpan.text(max))") }
      return span
    }
    if let parsed { target = parsed }
  }

  /// Reads a size in bytes.
  func size(_ name: String, into target: inout Int, in range: ClosedRange<Int>) {
    let parsed = member(name)?.parsed("a size such as 64KiB") { text throws(Refusal) in
      let bytes = try ByteSize.parse(text)
      guard range.contains(bytes) else {
        throw Refusal("must be from \(ByteSize.text(range.lowerBound)) to \(ByteSize.text(range.upperBound))")
      }
      return bytes
    }
    if let parsed { target = parsed }
  }

  func flag(_ name: String, into target: inout Bool) {
    let parsed = member(name)?.parsed("true or false") { text throws(Refusal) in
      guard let flag = Bool(text) else { throw Refusal("must be true or false") }
      return flag
    }
    if let parsed { target = parsed }
  }

  /// Reads a word from a closed list.
  func choice<Choice: RawRepresentable<String> & CaseIterable>(_ name: String, into target: inout Choice) {
    let words = Choice.allCases.map(\.rawValue).asAlternatives
    let parsed = member(name)?.parsed("\(words)") { text throws(Refusal) in
      guard let choice = Choice(rawValue: text) else { throw Refusal("must be \(words)") }
      return choice
    }
    if let parsed { target = parsed }
  }

  /// Reads a text that is not empty.
  func text(_ name: String, _ wanted: String) -> String? {
    member(name)?.parsed(wanted) { text throws(Refusal) in
      guard !text.isEmpty else { throw Refusal("must not be empty: write \(wanted)") }
      return text
    }
  }

  func section(_ name: String, _ read: (Section) -> Void) {
    member(name)?.section(read)
  }
}

extension [String] {
  /// The words as `a, b or c`.
  var asAlternatives: String {
    guard let last, count > 1 else { return first ?? "" }
    return "\(dropLast().joined(separator: ", ")) or \(last)"
  }
}
