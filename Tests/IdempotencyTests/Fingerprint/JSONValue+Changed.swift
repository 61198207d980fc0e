import TestSupport

extension JSONValue {
  /// Another value than this one, in one place.
  func changed(using generator: inout SeededGenerator) -> JSONValue {
    if Int.random(in: 0..<8, using: &generator) == 0 { return .array([self]) }
    switch self {
    case .literal(let text): return .literal(text == "true" ? "null" : "true")
    case .number(let text):
      return Bool.random(using: &generator) ? .number(text + "0") : .string(Array(text.utf16))
    case .string(let units): return .string(Self.changed(units, using: &generator))
    case .array(var elements):
      guard let index = elements.indices.randomElement(using: &generator), Bool.random(using: &generator)
      else {
        return .array(elements + [.literal("null")])
      }
      if case .array(let nested) = elements[index], Bool.random(using: &generator) {
        // Its elements, in its place.
        elements.replaceSubrange(index...index, with: nested)
      } else {
        elements[index] = elements[index].changed(using: &generator)
      }
      return .array(elements)
    case .object(var members):
      guard
        let name = members.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }).randomElement(
          using: &generator),
        let value = members[name]
      else { return .array([]) }
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: members[name] = nil
      case 1: members[name] = value.changed(using: &generator)
      default:
        members[name] = nil
        var other = Self.changed(name, using: &generator)
        while members[other] != nil { other.append(0x78) }
        members[other] = value
      }
      return .object(members)
    }
  }

  private static func changed(_ units: [UInt16], using generator: inout SeededGenerator) -> [UInt16] {
    guard let index = units.indices.randomElement(using: &generator), Bool.random(using: &generator) else {
      return units + [0x61]
    }
    var units = units
    units[index] ^= 1
    return units
  }
}
