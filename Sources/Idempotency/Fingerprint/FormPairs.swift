/// The pairs of a query or of an `application/x-www-form-urlencoded` body, in their order. Empty pairs are skipped.
struct FormPairs: Sequence, IteratorProtocol {
  /// The position of a pair. It is small, since a body may hold half as many pairs as bytes.
  struct Pair: BitwiseCopyable {
    fileprivate var start: UInt32
    /// The offset of the `=`, or the end if there is none.
    fileprivate var nameEnd: UInt32
    fileprivate var end: UInt32

    var name: Range<Int> { Int(start)..<Int(nameEnd) }
    var value: Range<Int> { (hasValue ? Int(nameEnd) + 1 : Int(end))..<Int(end) }
    /// Whether the pair has a `=`. Without it, the value is empty.
    var hasValue: Bool { nameEnd < end }

    fileprivate init(start: Int, nameEnd: Int, end: Int) {
      (self.start, self.nameEnd, self.end) = (UInt32(start), UInt32(nameEnd), UInt32(end))
    }

    /// Restores a pair without its name, which has been read already.
    fileprivate init(payload: UInt64) {
      (start, nameEnd, end) = (0, UInt32(payload >> 32), UInt32(truncatingIfNeeded: payload))
    }

    fileprivate var payload: UInt64 { UInt64(nameEnd) << 32 | UInt64(end) }
  }

  private let text: UnsafeRawBufferPointer
  private var position = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  mutating func next() -> Pair? {
    while position < text.count {
      let start = position
      var equals: Int?
      while position < text.count, text[position] != UInt8(ascii: "&") {
        if equals == nil, text[position] == UInt8(ascii: "=") { equals = position }
        position += 1
      }
      let end = position
      position += 1
      guard end > start else { continue }
      return Pair(start: start, nameEnd: equals ?? end, end: end)
    }
    return nil
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
    withUnsafeTemporaryAllocation(byteCount: text.count, alignment: 1) { decoded in
      NameOrder.with(capacity: bound, in: UnsafeRawBufferPointer(decoded)) { order in
        read(text, as: reading, to: decoded, &order)
        order.sort()
        hash.number(order.count)
        for place in 0..<order.count {
          let entry = order[place]
          let pair = Pair(payload: entry.payload)
          hash.frame(UnsafeRawBufferPointer(rebasing: decoded[entry.range]))
          if marksMissing { hash.byte(pair.hasValue ? 1 : 0) }
          hash.frame(UnsafeRawBufferPointer(rebasing: text[pair.value]), as: reading)
        }
      }
    }
  }

  /// Reads all pairs and decodes each name once.
  private static func read(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading,
    to decoded: UnsafeMutableRawBufferPointer,
    _ order: inout NameOrder
  ) {
    var end = 0
    for pair in FormPairs(text) {
      let room = UnsafeMutableRawBufferPointer(rebasing: decoded[end...])
      let length = PercentText.decode(
        UnsafeRawBufferPointer(rebasing: text[pair.name]), as: reading, to: room)
      order.append(NameOrder.Entry(start: end, length: length, payload: pair.payload))
      end += length
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
