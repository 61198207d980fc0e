/// The order of two sequences, byte by byte. A prefix of a sequence comes before it.
enum ByteOrder {
  case ascending, same, descending

  init<Left: IteratorProtocol<UInt8>, Right: IteratorProtocol<UInt8>>(_ left: Left, _ right: Right) {
    var left = left
    var right = right
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil):
        self = .same
        return
      case (nil, _):
        self = .ascending
        return
      case (_, nil):
        self = .descending
        return
      case (let one?, let other?):
        guard one == other else {
          self = one < other ? .ascending : .descending
          return
        }
      }
    }
  }

  init(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) {
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      self = left[index] < right[index] ? .ascending : .descending
      return
    }
    self = left.count == right.count ? .same : left.count < right.count ? .ascending : .descending
  }
}
