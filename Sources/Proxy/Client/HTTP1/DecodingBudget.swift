import NIOCore

/// The parts of messages that one connection may have decoded in one turn of the event loop.
///
/// A chunk of one byte costs about as much as one of 64 KiB, and a request that a client pipelines costs more still:
/// without a bound one read of small parts would delay all other connections for as long as thousands of requests.
struct DecodingBudget {
  /// The number of parts, as many as of HTTP/2's frames.
  private static let maxParts = 512
  /// The parts that one request counts for: the run of a request costs more than its decoding.
  private static let partsOfRequest = 8
  /// The time until the next turn. The loop runs what is due at once before it looks at its sockets again.
  static let pause = TimeAmount.microseconds(100)

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
}
