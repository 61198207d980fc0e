import Idempotency
import NIOCore

/// A client's body that is there at once, piece by piece. `@unchecked`, because one exchange alone reads it, and the
/// test only once that has ended.
final class Pieces: RequestBodyStream, @unchecked Sendable {
  private var left: [String]
  private let ending: UpstreamFailure?
  /// The number of pieces that were taken.
  private(set) var taken = 0

  init(_ pieces: [String], ending: UpstreamFailure? = nil) {
    left = pieces.reversed()
    self.ending = ending
  }

  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    guard let piece = left.popLast() else {
      if let ending { throw ending }
      return nil
    }
    taken += 1
    return ByteBuffer(string: piece)
  }
}
