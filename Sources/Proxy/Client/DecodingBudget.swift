/// The parts of messages that one connection may have decoded in one turn of the event loop.
///
/// A chunk or a DATA frame of one byte costs about as much as one of 16 KiB, and a request costs more still: without a
/// bound one read of small parts would delay all other connections for as long as thousands of requests.
///
/// Each byte of a head is read several times, and HTTP/2 has the sender name thousands of them by one byte: heads are
/// charged by the bytes that they have when they are decoded.
struct DecodingBudget {
  /// The number of parts.
  private static let maxParts = 512
  /// The parts that one request counts for: the run of a request costs more than its decoding.
  static let partsOfRequest = 8
  /// The decoded bytes of a head or of trailers that count as one part.
  private static let bytesOfPart = 1 << 10

  private var left = maxParts

  var isOver: Bool { left <= 0 }

  /// Takes one part; false if none is left.
  mutating func take() -> Bool {
    guard left > 0 else { return false }
    left -= 1
    return true
  }

  /// Charges for the run of a request.
  mutating func chargeRequest() { left -= Self.partsOfRequest - 1 }

  /// Charges for the decoded bytes of a head, or of trailers.
  mutating func charge(headBytes: Int) { left -= headBytes / Self.bytesOfPart }

  /// Charges for parts that were decoded.
  mutating func charge(_ parts: Int) { left -= parts }
}
