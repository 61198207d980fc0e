import NIOCore

/// Something that comes to pass once, and that one may wait for before and after. Confined to its loop.
final class LateResult {
  private var result: Result<Void, any Error>?
  private var promise: EventLoopPromise<Void>?

  var isSet: Bool { result != nil }

  /// The first call counts.
  func set(_ result: Result<Void, any Error>) {
    guard self.result == nil else { return }
    self.result = result
    promise?.completeWith(result)
  }

  /// To be called once.
  func wait(on loop: any EventLoop) -> EventLoopFuture<Void> {
    let promise = loop.makePromise(of: Void.self)
    self.promise = promise
    if let result { promise.completeWith(result) }
    return promise.futureResult
  }
}
