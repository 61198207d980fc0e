import Idempotency
import NIOCore

extension Milliseconds {
  /// The whole milliseconds of a span, rounded towards zero.
  public init(_ span: TimeAmount) { self.init(span.nanoseconds / 1_000_000) }
}
