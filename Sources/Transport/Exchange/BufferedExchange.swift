import Idempotency
import NIOCore

/// An exchange that holds what has come of the answer's body until it is taken. What the port promises of an answer
/// follows from this.
protocol BufferedExchange: AwaitableExchange {
  var finalHead: UpstreamHead? { get }
  /// What has come of the body and was not taken yet.
  var body: ByteBuffer { get set }
  /// From here on reading pauses; `collect` raises it.
  var pauseAt: Int { get set }
  /// Holds the backend back while nobody reads, and lets it go on.
  func updateReading()
}

extension BufferedExchange {
  /// How much of a body is taken from the backend while nobody reads it.
  static var highWater: Int { 256 << 10 }

  var waitingBytes: Int { body.readableBytes }

  public func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead {
    try await wait(for: .head, within: span)
    guard let finalHead else { preconditionFailure("\(Self.self): waited for a head, and has none") }
    return finalHead
  }

  public func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  {
    pauseAt = max(Self.highWater, min(limit, .max - 1) + 1)
    updateReading()
    try await wait(for: .body(upTo: limit), within: span)
    pauseAt = Self.highWater
    return body.readableBytes > limit ? .tooLarge : .whole(takeBody())
  }

  public func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? {
    try await wait(for: .piece, within: span)
    guard body.readableBytes > 0 else { return nil }
    let piece = takeBody()
    updateReading()
    return piece
  }

  public func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) {
    let piece = takeBody()
    updateReading()
    return (piece, isWhole && body.readableBytes == 0)
  }

  private func takeBody() -> ByteBuffer {
    let piece = body
    body = ByteBuffer()
    return piece
  }
}
