import NIOCore

/// Something that comes to pass once, and that one may wait for before and after. Confined to its loop.
struct LateResult {
  private var result: Result<Void, any Error>?
  private var promise: EventLoopPromise<Void>?

  /// The first call counts.
  mutating func set(_ result: Result<Void, any Error>) {
    guard self.result == nil else { return }
    self.result = result
    let promise = promise
    self.promise = nil
    promise?.completeWith(result)
  }

  var isSet: Bool { result != nil }

  /// To be called once.
  mutating func wait(on loop: any EventLoop) -> EventLoopFuture<Void> {
    let promise = loop.makePromise(of: Void.self)
    if let result { promise.completeWith(result) } else { self.promise = promise }
    return promise.futureResult
  }
}
