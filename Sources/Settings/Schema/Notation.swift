import Idempotency

/// The notation of one kind of value: how it is read, shown, and described in the reference.
struct Notation<Content: Sendable>: Sendable {
  /// The allowed values in words, such as `0 to 1024`.
  let values: String
  /// Reads a value; `nil` if it was refused.
  let read: @Sendable (Value) -> Content?
  let show: @Sendable (Content) -> Shown?
}

extension Notation {
  /// - Parameters:
  ///   - wanted: The expected value for error messages, such as `a name`.
  ///   - values: The allowed values in the reference, if `wanted` does not say them.
  static func text(
    _ wanted: String, values: String? = nil, show: @escaping @Sendable (Content) -> Shown?,
    parse: @escaping @Sendable (String) throws(Refusal) -> Content
  ) -> Notation {
    Notation(values: values ?? wanted, read: { $0.parsed(wanted, parse) }, show: show)
  }

  static func choice(
    _ wanted: String, show: @escaping @Sendable (Content) -> Shown?,
    choose: @escaping @Sendable (String) -> Content?
  ) -> Notation {
    Notation(values: wanted, read: { $0.choice(wanted, choose) }, show: show)
  }

  static func list<Element: Hashable>(
    _ wanted: String, of element: String, show: @escaping @Sendable (Element) -> Shown,
    parse: @escaping @Sendable (String) throws(Refusal) -> Element
  ) -> Notation where Content == [Element] {
    Notation(
      values: wanted, read: { $0.list(wanted, of: element, parse) }, show: { .list($0.map(show)) })
  }

  var optional: Notation<Content?> {
    Notation<Content?>(values: values, read: { read($0).map(Optional.some) }, show: { $0.flatMap(show) })
  }
}

extension Notation<Int> {
  static func integer(_ range: ClosedRange<Int>) -> Notation {
    .text(
      "a whole number", values: "\(range.lowerBound) to \(range.upperBound)", show: { .number($0) }
    ) { text throws(Refusal) in try number(text, in: range) }
  }

  static func integer(_ numbers: [Int]) -> Notation {
    .choice(numbers.map(String.init).asAlternatives, show: { .number($0) }) { text in
      numbers.first { String($0) == text }
    }
  }

  static func size(_ range: ClosedRange<Int>) -> Notation {
    let bounds = (ByteSize.text(range.lowerBound), ByteSize.text(range.upperBound))
    return .text("a size such as 64KiB", values: "\(bounds.0) to \(bounds.1)", show: { .size($0) }) {
      text throws(Refusal) in
      let bytes = try ByteSize.parse(text)
      guard range.contains(bytes) else { throw Refusal("must be from \(bounds.0) to \(bounds.1)") }
      return bytes
    }
  }

  fileprivate static func number(_ text: String, in range: ClosedRange<Int>) throws(Refusal) -> Int {
    let isNumber = !text.isEmpty && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard isNumber, let number = Int(text), range.contains(number) else {
      throw Refusal("must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }
}

extension Notation<Int?> {
  /// A limit, of which 0 means that there is none.
  static func limit(atMost max: Int) -> Notation {
    .text("a whole number", values: "0 to \(max)", show: { .number($0 ?? 0) }) { text throws(Refusal) in
      let number = try Notation<Int>.number(text, in: 0...max)
      return number == 0 ? nil : number
    }
  }
}

extension Notation<Milliseconds> {
  static func duration(atLeast min: Milliseconds = 0, atMost max: Milliseconds = TimeSpan.max) -> Notation {
    let bounds = [
      min > 1 ? "from \(min.text)" : min > 0 ? "above 0s" : nil,
      max < TimeSpan.max ? "up to \(max.text)" : nil,
    ]
    let values = (["a duration"] + bounds.compactMap(\.self)).joined(separator: " ")
    return .text("a duration such as 30s", values: values, show: { .span($0) }) { text throws(Refusal) in
      let span = try TimeSpan.parse(text)
      guard span >= min else { throw Refusal("must be at least \(min.text)") }
      guard span <= max else { throw Refusal("must be at most \(max.text)") }
      return span
    }
  }
}

extension Notation<Bool> {
  static let flag = Notation.choice("true or false", show: { .flag($0) }) { Bool($0) }
}

extension Notation<ConfigurationChange.Digest?> {
  static let acceptance = Notation.text(
    "the digest of a change", values: "the digest of a refused change, or `false`",
    show: { $0.map { .text($0.text) } ?? .flag(false) }
  ) { text throws(Refusal) in
    if text == "false" { return nil }
    guard let digest = ConfigurationChange.Digest(text) else {
      throw Refusal(
        "must be the digest of the one change that it accepts, such as allow_identity_change: abcdefghij; the refusal "
          + "of a start or a reload, and semel check --live, name it; without such a refusal take this out")
    }
    return digest
  }
}

extension Notation where Content: RawRepresentable<String> & CaseIterable {
  static var word: Notation {
    .choice(Content.allCases.map(\.rawValue).asAlternatives, show: { .word($0) }) { Content(rawValue: $0) }
  }
}

extension Notation<String> {
  static func text(_ wanted: String) -> Notation {
    .text(wanted, show: { .text($0) }) { text throws(Refusal) in
      guard !text.isEmpty else { throw Refusal("must not be empty: write \(wanted)") }
      return text
    }
  }

  static func name(_ wanted: String = "a name") -> Notation {
    .text(wanted, show: { .text($0) }) { text throws(Refusal) in try Identifier.parse(text) }
  }
}

extension [String] {
  /// The words as `a, b or c`.
  var asAlternatives: String {
    guard let last, count > 1 else { return first ?? "" }
    return "\(dropLast().joined(separator: ", ")) or \(last)"
  }
}
