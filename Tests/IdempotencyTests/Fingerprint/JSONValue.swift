import TestSupport

/// A random JSON value for tests, its texts as UTF-16 units, so that surrogates may stand alone.
indirect enum JSONValue: Hashable {
  case literal(String)
  case number(String)
  case string([UInt16])
  case array([JSONValue])
  case object([[UInt16]: JSONValue])
}

extension JSONValue {
  static func random(depth: Int, using generator: inout SeededGenerator) -> JSONValue {
    switch Int.random(in: 0..<(depth > 0 ? 8 : 4), using: &generator) {
    case 0: return .literal(["true", "false", "null"].randomElement(using: &generator) ?? "null")
    case 1: return .number(randomNumber(using: &generator))
    case 2, 3: return .string(randomText(using: &generator))
    case 4, 5:
      let count = Int.random(in: 0...4, using: &generator)
      return .array((0..<count).map { _ in random(depth: depth - 1, using: &generator) })
    default:
      var members: [[UInt16]: JSONValue] = [:]
      for _ in 0..<Int.random(in: 0...6, using: &generator) {
        members[randomText(using: &generator)] = random(depth: depth - 1, using: &generator)
      }
      return .object(members)
    }
  }

  private static func randomNumber(using generator: inout SeededGenerator) -> String {
    var text = String(Int.random(in: -1000...1000, using: &generator))
    if Bool.random(using: &generator) { text += ".\(Int.random(in: 0...99, using: &generator))" }
    if Int.random(in: 0..<4, using: &generator) == 0 {
      text += "e\(Int.random(in: -9...9, using: &generator))"
    }
    return text
  }

  private static func randomText(using generator: inout SeededGenerator) -> [UInt16] {
    let alphabets: [ClosedRange<UInt16>] = [
      0x61...0x64, 0x61...0x7A, 0x20...0x7E, 0...0x1F, 0x80...0x7FF, 0x4E00...0x9FFF, 0xD7F0...0xE010,
      0xFFF0...0xFFFF,
    ]
    let count = Int.random(in: 0...5, using: &generator)
    var units: [UInt16] = []
    let alphabet = Int.random(in: 0..<3, using: &generator) == 0 ? nil : alphabets[0]
    for _ in 0..<count {
      let range = alphabet ?? alphabets.randomElement(using: &generator) ?? alphabets[0]
      units.append(UInt16.random(in: range, using: &generator))
    }
    return units
  }
}

extension JSONValue {
  /// One of its spellings: members in any order, white space and escapes wherever they may stand.
  func text(using generator: inout SeededGenerator) -> [UInt8] {
    var text: [UInt8] = []
    write(to: &text, using: &generator)
    Self.writeSpace(to: &text, using: &generator)
    return text
  }

  private func write(to text: inout [UInt8], using generator: inout SeededGenerator) {
    Self.writeSpace(to: &text, using: &generator)
    switch self {
    case .literal(let literal): text += literal.utf8
    case .number(let number): text += number.utf8
    case .string(let units): Self.write(units, to: &text, using: &generator)
    case .array(let elements):
      text.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        element.write(to: &text, using: &generator)
        Self.writeSpace(to: &text, using: &generator)
      }
      if elements.isEmpty { Self.writeSpace(to: &text, using: &generator) }
      text.append(UInt8(ascii: "]"))
    case .object(let members):
      text.append(UInt8(ascii: "{"))
      let names = members.keys.sorted { $0.lexicographicallyPrecedes($1) }.shuffled(using: &generator)
      for (index, name) in names.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        Self.writeSpace(to: &text, using: &generator)
        Self.write(name, to: &text, using: &generator)
        Self.writeSpace(to: &text, using: &generator)
        text.append(UInt8(ascii: ":"))
        members[name]?.write(to: &text, using: &generator)
        Self.writeSpace(to: &text, using: &generator)
      }
      text.append(UInt8(ascii: "}"))
    }
  }

  private static func writeSpace(to text: inout [UInt8], using generator: inout SeededGenerator) {
    while Int.random(in: 0..<5, using: &generator) == 0 {
      text.append([0x20, 0x09, 0x0A, 0x0D].randomElement(using: &generator) ?? 0x20)
    }
  }

  private static func write(_ units: [UInt16], to text: inout [UInt8], using generator: inout SeededGenerator)
  {
    text.append(UInt8(ascii: "\""))
    var index = 0
    while index < units.count {
      let unit = units[index]
      index += 1
      if UTF16.isLeadSurrogate(unit), index < units.count, UTF16.isTrailSurrogate(units[index]) {
        let pair = [unit, units[index]]
        index += 1
        if Bool.random(using: &generator) {
          text += String(decoding: pair, as: UTF16.self).utf8
        } else {
          for unit in pair { text += escape(unit, using: &generator) }
        }
      } else {
        text += spelling(of: unit, using: &generator)
      }
    }
    text.append(UInt8(ascii: "\""))
  }

  private static func spelling(of unit: UInt16, using generator: inout SeededGenerator) -> [UInt8] {
    let shortcuts: [UInt16: String] = [
      0x22: #"\""#, 0x5C: #"\\"#, 0x2F: #"\/"#, 0x08: #"\b"#, 0x0C: #"\f"#, 0x0A: #"\n"#, 0x0D: #"\r"#,
      0x09: #"\t"#,
    ]
    let choice = Int.random(in: 0..<4, using: &generator)
    if choice == 0, let shortcut = shortcuts[unit] { return Array(shortcut.utf8) }
    guard choice > 1, unit >= 0x20, unit != 0x22, unit != 0x5C, let scalar = Unicode.Scalar(unit) else {
      return escape(unit, using: &generator)
    }
    return Array(String(Character(scalar)).utf8)
  }

  private static func escape(_ unit: UInt16, using generator: inout SeededGenerator) -> [UInt8] {
    let digits = String(unit, radix: 16, uppercase: Bool.random(using: &generator))
    return Array((#"\u"# + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
  }
}
