/// The pairs of a query or of an `application/x-www-form-urlencoded` body, in their order. Empty ones are
/// passed over.
struct FormPairs: Sequence, IteratorProtocol {
  /// Where a pair stands; small, since a body may hold half as many pairs as bytes.
  struct Pair {
    fileprivate var start: UInt32
    /// Where the `=` stands, or the end.
    fileprivate var nameEnd: UInt32
    fileprivate var end: UInt32

    var name: Range<Int> { Int(start)..<Int(nameEnd) }
    var value: Range<Int> { (hasValue ? Int(nameEnd) + 1 : Int(end))..<Int(end) }
    /// Whether there is a `=`; without it the value is empty.
    var hasValue: Bool { nameEnd < end }
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
      return Pair(start: UInt32(start), nameEnd: UInt32(equals ?? end), end: UInt32(end))
    }
    return nil
  }
}

extension FormPairs {
  /// Writes the pairs sorted by what their names read as; those of one name stay in their order.
  ///
  /// - Parameter tellsMissing: whether `a` and `a=` are different pairs.
  static func write(
    _ text: UnsafeRawBufferPointer, as reading: PercentText.Reading, tellsMissing: Bool,
    to hash: inout FramedHash
  ) {
    guard text.count > 0 else {
      hash.number(0)
      return
    }
    var pairs = Array(FormPairs(text))
    if pairs.count > 1 { pairs.sort { precedes($0, $1, in: text, as: reading) } }
    hash.number(pairs.count)
    for pair in pairs {
      hash.frame(UnsafeRawBufferPointer(rebasing: text[pair.name]), as: reading)
      if tellsMissing { hash.byte(pair.hasValue ? 1 : 0) }
      hash.frame(UnsafeRawBufferPointer(rebasing: text[pair.value]), as: reading)
    }
  }

  private static func precedes(
    _ left: Pair, _ right: Pair, in text: UnsafeRawBufferPointer, as reading: PercentText.Reading
  ) -> Bool {
    let leftName = PercentText(UnsafeRawBufferPointer(rebasing: text[left.name]), as: reading)
    let rightName = PercentText(UnsafeRawBufferPointer(rebasing: text[right.name]), as: reading)
    switch ByteOrder(leftName, rightName) {
    case .ascending: return true
    case .same: return left.start < right.start
    case .descending: return false
    }
  }

  /// What a pair of this name holds.
  enum Finding {
    case absent
    case once(Range<Int>)
    case repeated
  }

  /// Looks for the one pair whose name reads as this.
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
