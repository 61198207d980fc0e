import NIOCore
import Wire

/// A JSON text around one of its arrays: the text before the first element, the elements, and the text after the last.
///
/// Of an array with too many elements only the first ones are taken apart, and `elements` shows that.
public struct JSONArrayText: Sendable {
  private let before: ByteBuffer
  private let after: ByteBuffer
  /// The text of each element, without space around it.
  public let elements: [ByteBuffer]

  /// Splits a text at the array that the pointer names; `nil` if it is not JSON, names a member twice anywhere, or has
  /// no array there.
  ///
  /// A member that stands twice may be read by the backend as another one than by Semel.
  ///
  /// - Parameter maxElements: The number of elements that are wanted at most. Of an array with more, one more is there.
  public init?(_ text: ByteBuffer, at pointer: String, maxElements: Int) {
    guard let pointer = JSONPointer(pointer) else { return nil }
    let found = text.withUnsafeReadableBytes { bytes -> (around: Range<Int>, elements: [Range<Int>])? in
      guard let document = try? JSONParser.parse(bytes), !document.hasDuplicates else { return nil }
      return document.array(at: pointer, maxElements: maxElements)
    }
    guard let found else { return nil }
    func slice(_ range: Range<Int>) -> ByteBuffer? {
      text.getSlice(at: text.readerIndex + range.lowerBound, length: range.count)
    }
    guard let before = slice(0..<found.around.lowerBound),
      let after = slice(found.around.upperBound..<text.readableBytes)
    else { return nil }
    self.before = before
    self.after = after
    elements = found.elements.compactMap(slice)
    guard elements.count == found.elements.count else { return nil }
    invariant(elements.count - 1 <= maxElements, "more elements of an array are taken apart than are wanted")
  }

  /// The text of Semel's own around an array that the pointer names: objects with one member each.
  public init(around pointer: String) {
    var (before, after) = ("[", "]")
    for segment in (JSONPointer(pointer)?.segments ?? []).reversed() {
      before = "{\(String(decoding: segment.name, as: UTF8.self).jsonString):\(before)"
      after += "}"
    }
    self.before = ByteBuffer(string: before)
    self.after = ByteBuffer(string: after)
    elements = []
  }

  /// The text with these elements in place of its own.
  public func text(with elements: [ByteBuffer]) -> ByteBuffer {
    let size = elements.reduce(before.readableBytes + after.readableBytes) { $0 + $1.readableBytes + 1 }
    var text = ByteBufferAllocator().buffer(capacity: size)
    text.writeImmutableBuffer(before)
    for (index, element) in elements.enumerated() {
      if index > 0 { text.writeLiteral(",") }
      text.writeImmutableBuffer(element)
    }
    text.writeImmutableBuffer(after)
    return text
  }
}
