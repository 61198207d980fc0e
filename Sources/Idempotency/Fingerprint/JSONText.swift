import Wire

/// The decoded bytes of a JSON string, with its escapes resolved, in UTF-8.
///
/// The string must have been checked. A surrogate without its other half is written as UTF-8 would write a scalar with
/// that number (three bytes, of which the first two are ED A0 or above). No valid text contains these bytes, so they
/// collide with nothing.
struct JSONText: IteratorProtocol {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  /// The rest of a decoded escape, with the next byte lowest.
  private var pending: UInt32 = 0
  private var pendingCount = 0

  /// Creates an iterator over the decoded bytes of a string.
  ///
  /// - Parameter bytes: The text between the quotes.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func next() -> UInt8? {
    if pendingCount > 0 { return popPending() }
    guard position < bytes.count else { return nil }
    let byte = bytes[position]
    position += 1
    guard byte == UInt8(ascii: "\\") else { return byte }
    let kind = bytes[position]
    position += 1
    switch kind {
    case UInt8(ascii: "b"): return 0x08
    case UInt8(ascii: "f"): return 0x0C
    case UInt8(ascii: "n"): return 0x0A
    case UInt8(ascii: "r"): return 0x0D
    case UInt8(ascii: "t"): return 0x09
    case UInt8(ascii: "u"):
      hold(scalar())
      return popPending()
    default: return kind
    }
  }

  /// Decodes into memory at least as large as `bytes`, which always suffices, and returns the number of bytes written.
  static func decode(_ bytes: UnsafeRawBufferPointer, to memory: UnsafeMutableRawBufferPointer) -> Int {
    var text = JSONText(bytes)
    var count = 0
    while let byte = text.next() {
      memory[count] = byte
      count += 1
    }
    return count
  }

  private mutating func popPending() -> UInt8 {
    let byte = UInt8(truncatingIfNeeded: pending)
    pending >>= 8
    pendingCount -= 1
    return byte
  }

  /// The scalar of four hexadecimal digits, or of the eight in a surrogate pair.
  private mutating func scalar() -> UInt32 {
    let first = unit(at: position)
    position += 4
    guard 0xD800..<0xDC00 ~= first, position + 6 <= bytes.count, bytes[position] == UInt8(ascii: "\\"),
      bytes[position + 1] == UInt8(ascii: "u")
    else { return first }
    let second = unit(at: position + 2)
    guard 0xDC00..<0xE000 ~= second else { return first }
    position += 6
    return 0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)
  }

  private func unit(at start: Int) -> UInt32 {
    var unit: UInt32 = 0
    for index in start..<start + 4 { unit = unit << 4 | UInt32(ASCII.hexValue(bytes[index]) ?? 0) }
    return unit
  }

  private mutating func hold(_ scalar: UInt32) {
    func tail(_ shift: UInt32) -> UInt32 { 0x80 | scalar >> shift & 0x3F }
    switch scalar {
    case ..<0x80: (pending, pendingCount) = (scalar, 1)
    case ..<0x800: (pending, pendingCount) = (0xC0 | scalar >> 6 | tail(0) << 8, 2)
    case ..<0x10000: (pending, pendingCount) = (0xE0 | scalar >> 12 | tail(6) << 8 | tail(0) << 16, 3)
    default:
      pending = 0xF0 | scalar >> 18 | tail(12) << 8 | tail(6) << 16 | tail(0) << 24
      pendingCount = 4
    }
  }
}

/// The top-level members by which a payload differs from the first one of its key, for operators alone: to a client it
/// would tell what another request contained.
public struct PayloadDifference: Sendable, Equatable {
  /// The pointers of the members whose values differ.
  public var changed: [String] = []
  /// The pointers of the members that the first payload did not have.
  public var added: [String] = []
  /// The number of members of the first payload that are missing. Their names are not kept.
  public var missing = 0

  private static let maxNames = 8
  private static let maxLength = 64

  /// A short text: `/amount +/note -1`.
  public var text: String {
    let names = changed + added.map { "+" + $0 }
    var words = Array(names.prefix(Self.maxNames))
    if names.count > words.count { words.append("…") }
    if missing > 0 { words.append("-\(missing)") }
    return words.isEmpty ? "(no top-level member)" : words.joined(separator: " ")
  }

  /// The JSON pointer of a member, cut to a length that suits a log.
  ///
  /// Characters that cannot be seen are written as in JSON (`\u202E`): a terminal or a reader of logs would take some for
  /// a command, or for the end of a line, and others turn the text around.
  static func pointer(_ name: [UInt8]) -> String {
    let scalars = String(decoding: name, as: UTF8.self).unicodeScalars
    var text = "/"
    for scalar in scalars.prefix(maxLength) {
      switch scalar {
      case "~": text += "~0"
      case "/": text += "~1"
      case _ where scalar.isInvisible: text += escape(scalar)
      default: text.unicodeScalars.append(scalar)
      }
    }
    return scalars.dropFirst(maxLength).isEmpty ? text : text + "…"
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    String(scalar).utf16.map { unit in
      let digits = String(unit, radix: 16, uppercase: true)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined()
  }
}

extension Unicode.Scalar {
  /// Whether it is a control character, a separator of lines, or one that only changes how others are shown.
  fileprivate var isInvisible: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
