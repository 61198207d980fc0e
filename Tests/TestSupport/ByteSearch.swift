import Glibc

/// Searches by the C library. Tests are not optimised: they would go through a page for longer than it took to write it.
extension [UInt8] {
  /// The first place of a text from an offset on; `nil` if there is none.
  package func offset(of text: String, from start: Int = 0) -> Int? {
    let sought = Array(text.utf8)
    return withUnsafeBytes { bytes in
      guard let first = sought.first else { return start }
      guard let base = bytes.baseAddress else { return nil }
      var place = start
      while place + sought.count <= bytes.count,
        let next = memchr(base + place, Int32(first), bytes.count - sought.count - place + 1)
      {
        place = UnsafeRawPointer(next) - base
        if memcmp(next, sought, sought.count) == 0 { return place }
        place += 1
      }
      return nil
    }
  }

  /// The line that a place is in, without its end.
  package func line(around place: Int) -> String {
    let start = self[..<place].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    return String(decoding: self[start..<(offset(of: "\n", from: place) ?? count)], as: UTF8.self)
  }
}
