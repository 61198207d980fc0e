import Idempotency
import NIOCore
import Platform

/// These bodies do not fail while a piece of them waits.
extension RequestBodyStream {
  var failure: UpstreamFailure? { nil }
  func whenFailed(_ act: @escaping @Sendable () -> Void) {}
}

/// A large body in pieces of 64 KiB. `@unchecked`, because one exchange alone reads it, and the test only once that has
/// ended.
final class Trickle: RequestBodyStream, @unchecked Sendable {
  private var left: ByteBuffer
  private(set) var taken = 0

  init(_ body: ByteBuffer) { left = body }

  /// Waits until no more pieces are taken, and returns the bytes that were.
  func stalled(on context: EventLoopContext) async -> Int {
    var before = -1
    while before != taken {
      before = taken
      // No event announces that nothing happens.
      await context.sleep(milliseconds: 100)
    }
    return before
  }

  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    let piece = left.readSlice(length: min(1 << 16, left.readableBytes))
    taken += piece?.readableBytes ?? 0
    return piece.flatMap { $0.readableBytes > 0 ? $0 : nil }
  }
}

/// A client that sends nothing and stays.
final class Silence: RequestBodyStream {
  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    return nil
  }
}

/// A client that ends its empty body when `end` is called. `@unchecked`, because all calls are on the exchange's loop.
final class Later: RequestBodyStream, @unchecked Sendable {
  private var waiter: UnsafeContinuation<Void, Never>?

  func end() {
    waiter?.resume()
    waiter = nil
  }

  func next() async throws(UpstreamFailure) -> ByteBuffer? {
    await withUnsafeContinuation { waiter = $0 }
    return nil
  }
}
