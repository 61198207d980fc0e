import NIOCore

extension MessageHead {
  /// The framing of a response, and whether the head repeats it.
  ///
  /// The tolerant reading makes one field of several that state the same, so that only one is forwarded and recorded.
  mutating func framing(by reading: Reading) throws(WireError) -> (fields: FramingFields, isRepeated: Bool) {
    do throws(WireError) {
      return (try framingFields(by: reading), false)
    } catch {
      guard reading == .tolerant, mergeRepeatedFraming() else { throw error }
      return (try framingFields(by: reading), true)
    }
  }

  private func framingFields(by reading: Reading) throws(WireError) -> FramingFields {
    try bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try FramingFields(fields, in: bytes, reading: reading)
    }
  }

  /// Makes one field of equal lengths, in several lines or in a list, and one of equal lines `Transfer-Encoding:
  /// chunked`. Returns false, and changes nothing, where they differ.
  private mutating func mergeRepeatedFraming() -> Bool {
    let lengths = fields.indices.filter { fields[$0].name == .contentLength }
    let codings = fields.indices.filter { fields[$0].name == .transferEncoding }
    guard let length = commonLength(lengths), areChunked(codings) else { return false }
    if let first = lengths.first {
      fields[first].valueStart = UInt32(truncatingIfNeeded: length.lowerBound)
      fields[first].valueLength = UInt32(truncatingIfNeeded: length.count)
    }
    for index in (lengths.dropFirst() + codings.dropFirst()).sorted(by: >) { fields.remove(at: index) }
    return true
  }

  /// The position of the first of the numbers in these fields; `nil` if they differ. Empty if there are no fields.
  private func commonLength(_ lengths: [Int]) -> Range<Int>? {
    var common: (number: Int, range: Range<Int>)?
    for index in lengths {
      let value = fields[index].valueRange
      let isCommon = withBytes(value) { bytes in
        bytes.split(separator: ASCII.comma, omittingEmptySubsequences: false).allSatisfy { element in
          let element = Self.trimmed(element)
          guard let number = ASCII.decimal(UnsafeRawBufferPointer(rebasing: element)) else { return false }
          if let common { return common.number == number }
          common = (
            number, value.lowerBound + element.startIndex..<value.lowerBound + element.endIndex
          )
          return true
        }
      }
      guard isCommon else { return nil }
    }
    return common?.range ?? 0..<0
  }

  private func areChunked(_ codings: [Int]) -> Bool {
    codings.allSatisfy { index in
      withBytes(fields[index].valueRange) { ASCII.equalsIgnoringCase($0, "chunked") }
    }
  }
}
