import Idempotency
import NIOCore
import Wire

/// One reading of a response, for all deliveries that want it while it is under way. Confined to its loop.
///
/// The bytes are the same for all of them: the key names the owner that has written it, once, before any record named it.
final class ResponseReading {
  typealias Result = Swift.Result<ByteBuffer?, StoreError>

  private var readers: [(any ResponseReader)?]
  private var waiters: [UnsafeContinuation<Result, Never>] = []

  init(for reader: (any ResponseReader)?) { readers = [reader] }

  /// Whether a client still waits for it, or somebody who is no client.
  var isWanted: Bool { readers.contains { $0?.isConnected ?? true } }

  /// Waits for the end of the reading.
  func result(for reader: (any ResponseReader)?) async -> Result {
    readers.append(reader)
    return await withUnsafeContinuation { waiters.append($0) }
  }

  func end(_ result: Result) {
    let ended = waiters
    waiters = []
    invariant(ended.count == readers.count - 1, "a reader of a response is not told of its end")
    for waiter in ended { waiter.resume(returning: result) }
  }
}
