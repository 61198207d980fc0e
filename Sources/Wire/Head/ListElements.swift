/// The elements of a comma-separated list, without the white space around them. Empty elements are skipped.
///
/// Quoted strings are not recognised: the lists that a proxy reads contain tokens.
///
/// A stranger decides on the length of a list, so that only its first elements are read, empty ones included. Every
/// reader takes the safe side for the others (`isCut`).
public struct ListElements: Sequence, IteratorProtocol {
  /// The maximum number of elements that are read, empty ones included. Credentials of the longest scheme (OAuth 1.0)
  /// have a dozen.
  public static let maxElements = 64

  private let bytes: UnsafeRawBufferPointer
  private var at = 0
  /// The number of elements that were read, empty ones included.
  private(set) var visited = 0

  public init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  /// Whether `next` has left elements out, since the list has too many.
  public var isCut: Bool { visited == Self.maxElements && at < bytes.count }

  public mutating func next() -> UnsafeRawBufferPointer? {
    while at < bytes.count, visited < Self.maxElements {
      let end = ASCII.index(of: ASCII.comma, in: bytes, at..<bytes.count) ?? bytes.count
      let element = MessageHead.trimmed(bytes[at..<end])
      at = end + 1
      visited += 1
      if !element.isEmpty { return UnsafeRawBufferPointer(rebasing: element) }
    }
    return nil
  }
}
