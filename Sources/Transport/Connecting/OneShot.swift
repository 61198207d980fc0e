import NIOCore
import Wire

/// A one-shot result, which may be awaited before or after it is set. Confined to its loop.
final class OneShot {
  private var result: Result<Void, any Error>?
  private var promise: EventLoopPromise<Void>?

  var isSet: Bool { result != nil }

  /// Sets the result. Only the first call has an effect.
  func set(_ result: Result<Void, any Error>) {
    guard self.result == nil else { return }
    self.result = result
    promise?.completeWith(result)
  }

  /// Returns a future of the result. Call it at most once.
  func wait(on loop: any EventLoop) -> EventLoopFuture<Void> {
    invariant(promise == nil, "a result is awaited twice")
    let promise = loop.makePromise(of: Void.self)
    self.promise = promise
    if let result { promise.completeWith(result) }
    return promise.futureResult
  }
}
