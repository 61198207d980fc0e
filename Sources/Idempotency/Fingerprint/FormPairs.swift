import Wire

/// The pairs of a query or of an `application/x-www-form-urlencoded` body, in their order. Empty pairs are skipped.
struct FormPairs: Sequence, IteratorProtocol {
  /// The position of a pair. It is small, since a body may hold half as many pairs as bytes.
  struct Pair: BitwiseCopyable {
    fileprivate var start: UInt32
    /// The offset of the `=`, or the end if there is none.
    fileprivate(set) var nameEnd: UInt32
    fileprivate var end: UInt32

    var name: Range<Int> { Int(start)..<Int(nameEnd) }
    var value: Range<Int> { (hasValue ? Int(nameEnd) + 1 : Int(end))..<Int(end) }
    /// Whether the pair has a `=`. Without it, the value is empty.
    var hasValue: Bool { nameEnd < end }

    fileprivate init(start: Int, nameEnd: Int, end: Int) {
      (self.start, self.nameEnd, self.end) = (UInt32(start), UInt32(nameEnd), UInt32(end))
    }
  }

  private let text: UnsafeRawBufferPointer
  private var position = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  /// The pairs from this offset on.
  private init(_ text: UnsafeRawBufferPointer, at position: Int) {
    self.text = text
    self.position = position
  }

  @inline(__always)
  mutating func next() -> Pair? {
    var position = position
    let count = text.count
    while position < count, text[position] == UInt8(ascii: "&") { position += 1 }
    let start = position
    while position < count, text[position] != UInt8(ascii: "&"), text[position] != UInt8(ascii: "=") {
      position += 1
    }
    let nameEnd = position
    while position < count, text[position] != UInt8(ascii: "&") { position += 1 }
    self.position = position
    return position > start ? Pair(start: start, nameEnd: nameEnd, end: position) : nil
  }
}

extension FormPairs {
  /// Writes the pairs sorted by their decoded names. Pairs with the same name stay in their order.
  ///
  /// - Parameter marksMissing: Whether `a` and `a=` are different pairs.
  static func write(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading, marksMissing: Bool,
    to hash: inout FramedHash
  ) {
    guard text.count > 0 else {
      hash.number(0)
      return
    }
    let bound = 1 + text.count { $0 == UInt8(ascii: "&") }
    NameOrder.with(capacity: bound, size: text.count) { order in
      read(text, as: reading, &order)
      order.sort()
      hash.number(order.count)
      for place in 0..<order.count {
        let entry = order[place]
        if let (bytes, count) = entry.word {
          hash.frame(word: bytes, count: count)
        } else {
          hash.frame(order.name(of: entry))
        }
        let nameEnd = Int(entry.payload)
        let hasValue = nameEnd < text.count && text[nameEnd] == UInt8(ascii: "=")
        if marksMissing { hash.byte(hasValue ? 1 : 0) }
        guard hasValue else {
          hash.number(0)
          continue
        }
        var end = nameEnd + 1
        while end < text.count, text[end] != UInt8(ascii: "&") { end += 1 }
        hash.frame(UnsafeRawBufferPointer(rebasing: text[nameEnd + 1..<end]), as: reading)
      }
    }
  }

  /// Writes the pairs by what readers may make of them: sorted by their names only where nobody reads anything from their
  /// order, else in that order.
  ///
  /// - Parameters:
  ///   - marksMissing: Whether `a` and `a=` are different pairs.
  ///   - selection: The pairs that count. The others are written as if they were not there.
  static func writeByMeaning(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading, marksMissing: Bool,
    counting selection: PairSelection = .all, to hash: inout FramedHash
  ) {
    NameOrder.with(capacity: 1 + text.count { $0 == UInt8(ascii: "&") }, size: text.count) { order in
      let isSorted = sortFolded(text, as: reading, selection, &order)
      hash.byte(isSorted ? 0 : 1)
      hash.number(order.count)
      if isSorted {
        for place in 0..<order.count {
          var pairs = FormPairs(text, at: Int(order[place].payload))
          if let pair = pairs.next() { write(pair, of: text, as: reading, marksMissing, to: &hash) }
        }
      } else {
        for pair in FormPairs(text) where selection.counts(pair, of: text, as: reading) {
          write(pair, of: text, as: reading, marksMissing, to: &hash)
        }
      }
    }
  }

  @inline(__always)
  private static func write(
    _ pair: Pair, of text: UnsafeRawBufferPointer, as reading: PercentText.Reading, _ marksMissing: Bool,
    to hash: inout FramedHash
  ) {
    hash.frame(UnsafeRawBufferPointer(rebasing: text[pair.name]), as: reading)
    if marksMissing { hash.byte(pair.hasValue ? 1 : 0) }
    hash.frame(UnsafeRawBufferPointer(rebasing: text[pair.value]), as: reading)
  }

  /// Whether no reader can depend on the order of the pairs, so that they may be sorted: none of the names has a `[` or a
  /// `.`, by which frameworks build lists and objects, or a space or control character, of which PHP makes another name,
  /// and no two are equal when letter case is ignored.
  static func isSortable(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading = .form,
    counting selection: PairSelection = .all
  ) -> Bool {
    NameOrder.with(capacity: 1 + text.count { $0 == UInt8(ascii: "&") }, size: text.count) {
      sortFolded(text, as: reading, selection, &$0)
    }
  }

  /// Sorts the starts of all pairs that count by their names in lower case; false if they are not sortable.
  private static func sortFolded(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading, _ selection: PairSelection,
    _ order: inout NameOrder
  ) -> Bool {
    guard readFolded(text, as: reading, selection, &order) else { return false }
    order.sort()
    return order.isUnique
  }

  /// Reads the names of all pairs that count, decoded and in lower case; false if one has what may make it another
  /// name, or a part of one.
  private static func readFolded(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading, _ selection: PairSelection,
    _ order: inout NameOrder
  ) -> Bool {
    var isPlain = true
    for pair in FormPairs(text) where selection.counts(pair, of: text, as: reading) {
      let name = UnsafeRawBufferPointer(rebasing: text[pair.name])
      order.append(UInt32(pair.name.lowerBound)) { memory in
        let count = PercentText.decode(name, as: .form, to: memory)
        for index in 0..<count {
          let byte = memory[index]
          if byte == UInt8(ascii: "[") || byte == UInt8(ascii: ".") || byte <= ASCII.space { isPlain = false }
          memory[index] = ASCII.lowercased(byte)
        }
        return count
      }
    }
    return isPlain
  }

  /// Reads the names of all pairs and decodes each once. The value of a pair is found again from the name's end.
  private static func read(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading, _ order: inout NameOrder
  ) {
    for pair in FormPairs(text) {
      let name = UnsafeRawBufferPointer(rebasing: text[pair.name])
      let isShort = order.append(pair.nameEnd, short: name) {
        $0 != UInt8(ascii: "%") && $0 != UInt8(ascii: "+")
      }
      if !isShort { order.append(pair.nameEnd) { PercentText.decode(name, as: reading, to: $0) } }
    }
  }

  /// The result of a search for a pair by its name.
  enum Finding {
    case absent
    case once(Range<Int>)
    case repeated
    /// There are too many pairs to be read.
    case tooMany
  }

  /// The maximum number of parameters of a query that are read to find one. Readers have limits, too (PHP's is 1,000),
  /// and leave out what lies beyond.
  static let maxParameters = 256

  /// Searches for the one pair with this decoded name.
  ///
  /// - Parameter max: The maximum number of pairs that are read.
  static func find(
    _ name: String, in text: UnsafeRawBufferPointer, as reading: PercentText.Reading, max: Int = .max
  ) -> Finding {
    var finding = Finding.absent
    var left = max
    for pair in FormPairs(text) {
      guard left > 0 else { return .tooMany }
      left -= 1
      let isNamed = PercentText(UnsafeRawBufferPointer(rebasing: text[pair.name]), as: reading).reads(name)
      guard isNamed else { continue }
      guard case .absent = finding else { return .repeated }
      finding = .once(pair.value)
    }
    return finding
  }
}

/// The decoded bytes of a percent-encoded name or value, read one by one without a copy.
struct PercentText: IteratorProtocol {
  /// The treatment of encoded bytes.
  enum Reading: Sendable {
    /// The equivalence of URIs (RFC 3986, section 6.2.2): unreserved bytes are decoded, other encodings are in upper
    /// case. Two queries that a backend might distinguish stay different.
    case normalised
    /// Every encoded byte is decoded.
    case decoded
    /// The encoding of forms (WHATWG URL): every encoded byte is decoded, and `+` is a space.
    case form
  }

  private let bytes: UnsafeRawBufferPointer
  private let reading: Reading
  private var position = 0
  /// The number of an encoding's digits that are still to be returned in upper case.
  private var digits = 0

  init(_ bytes: UnsafeRawBufferPointer, as reading: Reading) {
    self.bytes = bytes
    self.reading = reading
  }

  /// The next byte. A `%` that two digits do not follow represents itself.
  @inline(__always)
  mutating func next() -> UInt8? {
    guard position < bytes.count else { return nil }
    let byte = bytes[position]
    position += 1
    if digits > 0 {
      digits -= 1
      return 0x61...0x66 ~= byte ? byte & ~0x20 : byte
    }
    guard byte == UInt8(ascii: "%") else {
      return byte == UInt8(ascii: "+") && reading == .form ? 0x20 : byte
    }
    guard position + 2 <= bytes.count, let high = ASCII.hexValue(bytes[position]),
      let low = ASCII.hexValue(bytes[position + 1])
    else { return byte }
    let value = high << 4 | low
    if reading == .normalised, !Self.isUnreserved(value) {
      digits = 2
      return byte
    }
    position += 2
    return value
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
    default: false
    }
  }

  /// Decodes into memory at least as large as `bytes`, which always suffices, and returns the number of bytes written.
  @inline(__always)
  static func decode(
    _ bytes: UnsafeRawBufferPointer, as reading: Reading, to memory: UnsafeMutableRawBufferPointer
  ) -> Int {
    var count = 0
    // Most names are plain, and many are too short for a call.
    while count < bytes.count {
      let byte = bytes[count]
      guard byte != UInt8(ascii: "%"), byte != UInt8(ascii: "+") else { break }
      memory[count] = byte
      count += 1
    }
    guard count < bytes.count else { return count }
    return count
      + decodeRest(
        UnsafeRawBufferPointer(rebasing: bytes[count...]), as: reading,
        to: UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
  }

  private static func decodeRest(
    _ bytes: UnsafeRawBufferPointer, as reading: Reading, to memory: UnsafeMutableRawBufferPointer
  ) -> Int {
    var text = PercentText(bytes, as: reading)
    var count = 0
    while let byte = text.next() {
      memory[count] = byte
      count += 1
    }
    return count
  }

  /// Whether nothing is encoded, so that the bytes need no decoding.
  static func isPlain(_ bytes: UnsafeRawBufferPointer, as reading: Reading) -> Bool {
    for byte in bytes where byte == UInt8(ascii: "%") || byte == UInt8(ascii: "+") && reading == .form {
      return false
    }
    return true
  }
}

extension PercentText {
  /// Whether two digits follow every `%`.
  static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "%") {
      guard index + 2 < bytes.count, ASCII.hexValue(bytes[index + 1]) != nil,
        ASCII.hexValue(bytes[index + 2]) != nil
      else { return false }
    }
    return true
  }

  /// Whether the decoded bytes equal this text.
  func reads(_ text: String) -> Bool { ByteOrder(self, text.utf8.makeIterator()) == .same }
}

extension FramedHash {
  /// Writes the decoded bytes after their length.
  @inline(__always)
  mutating func frame(_ bytes: UnsafeRawBufferPointer, as reading: PercentText.Reading) {
    if PercentText.isPlain(bytes, as: reading) { frame(bytes) } else { frame(coded: bytes, as: reading) }
  }

  @inline(never)
  private mutating func frame(coded bytes: UnsafeRawBufferPointer, as reading: PercentText.Reading) {
    var count = 0
    var measured = PercentText(bytes, as: reading)
    while measured.next() != nil { count += 1 }
    number(count)
    var text = PercentText(bytes, as: reading)
    while let byte = text.next() { self.byte(byte) }
  }
}
