import Wire

extension FormPairs {
  /// Whether some readers find the field in a form that has it not by the rules: those that end a pair at a semicolon,
  /// too, that drop spaces and control characters around a name, or what follows a NUL in it. Beyond `max` pairs it may
  /// be anywhere.
  static func mayHide(_ field: String, in text: UnsafeRawBufferPointer, max: Int = .max) -> Bool {
    var start = 0
    var isPair = true
    var left = max
    while start <= text.count {
      guard left > 0 else { return true }
      left -= 1
      var end = start
      while end < text.count, text[end] != UInt8(ascii: "&"), text[end] != UInt8(ascii: ";") { end += 1 }
      let ends = end == text.count || text[end] == UInt8(ascii: "&")
      let piece = UnsafeRawBufferPointer(rebasing: text[start..<end])
      let name = UnsafeRawBufferPointer(rebasing: piece.prefix { $0 != UInt8(ascii: "=") })
      let isPlain = isPair && ends && PercentText(name, as: .form).reads(field)
      if !isPlain, reads(PercentText(name, as: .form), roughlyAs: field) { return true }
      isPair = ends
      start = end + 1
    }
    return false
  }

  /// Whether some readers take a name for that of the field, without what they drop of it.
  static func reads(_ name: PercentText, roughlyAs field: String) -> Bool {
    var name = name
    var byte = name.next()
    while let space = byte, space <= ASCII.space { byte = name.next() }
    for wanted in field.utf8 {
      guard byte == wanted else { return false }
      byte = name.next()
    }
    while let space = byte, space != 0, space <= ASCII.space { byte = name.next() }
    return byte == nil || byte == 0
  }
}
