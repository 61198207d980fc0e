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
  }

  /// Searches for the one pair with this decoded name.
  static func find(_ name: String, in text: UnsafeRawBufferPointer, as reading: PercentText.Reading)
    -> Finding
  {
    var finding = Finding.absent
    for pair in FormPairs(text)
    where PercentText(UnsafeRawBufferPointer(rebasing: text[pair.name]), as: reading).reads(name) {
      guard case .absent = finding else { return .repeated }
      finding = .once(pair.value)
    }
    return finding
  }
}
