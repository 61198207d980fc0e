import Idempotency
import NIOCore

/// Hands a streamed body to libcurl piece by piece, reading one piece ahead of what was taken.
///
/// Confined to its loop. Knows nothing of libcurl: says what is there, and what to do next.
struct BodyFeed {
  private enum State {
    /// Nothing is held and nobody reads.
    case idle
    /// The next piece was asked for; `isAwaited` where libcurl was told to wait for it.
    case reading(isAwaited: Bool)
    case holding(ByteBuffer)
    case ended
  }

  private var state = State.idle
  private let length: Int?
  private var offered = 0

  init(length: Int?) { self.length = length }

  /// What libcurl is told; `readOn`: and the next piece is to be read from the client.
  enum SupplyAction: Equatable {
    case supplied(Int, readOn: Bool)
    case end
    case wait(readOn: Bool)
  }

  /// Whether all of the body was handed over.
  var isSupplied: Bool {
    switch state {
    case .ended: true
    case .idle, .reading: offered == length
    case .holding: false
    }
  }

  /// Whether libcurl waits for the client.
  var isStarving: Bool {
    if case .reading(isAwaited: true) = state { true } else { false }
  }

  mutating func supply(into room: UnsafeMutableRawBufferPointer) -> SupplyAction {
    switch state {
    case .idle:
      state = .reading(isAwaited: true)
      return .wait(readOn: true)
    case .reading:
      state = .reading(isAwaited: true)
      return .wait(readOn: false)
    case .holding(var piece):
      state = .idle
      let count = min(room.count, piece.readableBytes)
      piece.readWithUnsafeReadableBytes {
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count]))
        return count
      }
      if piece.readableBytes > 0 {
        state = .holding(piece)
      } else if offered != length {
        state = .reading(isAwaited: false)
        return .supplied(count, readOn: true)
      }
      return .supplied(count, readOn: false)
    case .ended:
      return .end
    }
  }

  enum OfferAction: Equatable {
    /// libcurl may take it; `resume` where it waits.
    case offered(resume: Bool)
    /// An empty piece: read on.
    case readOn
    case refuse(String)
  }

  /// The next piece has come, or the end.
  mutating func offer(_ piece: ByteBuffer?) -> OfferAction {
    guard case .reading(let isAwaited) = state else {
      preconditionFailure("BodyFeed: a piece came that nobody had asked for")
    }
    if let piece, piece.readableBytes == 0 { return .readOn }
    offered += piece?.readableBytes ?? 0
    if let length, offered > length { return .refuse("the request's body is longer than its length") }
    if piece == nil, let length, offered < length { return .refuse("the request's body ended early") }
    state = piece.map { .holding($0) } ?? .ended
    return .offered(resume: isAwaited)
  }
}
