import Idempotency
import NIOCore
import Platform

/// The rate below which a client does not move its body. One that moves a byte now and then would keep a connection to
/// the backend for as long as it likes.
enum LeastRate {
  /// Bytes per second of a time-out: less than a tenth of what the slowest mobile lines carry.
  private static let bytesPerSecond: Int64 = 512

  /// The number of bytes that extend a time-out, by their arrival or departure.
  static func bytes(in span: Milliseconds) -> Int {
    Int(max(1, min(span.count, 1 << 40) * bytesPerSecond / 1000))
  }
}

/// The pace of an upload, by the time for which its consumer has waited for it.
struct UploadPace {
  /// The time of waiting since the last bytes that extended the time-out, in milliseconds.
  private var waited: Int64 = 0
  /// The number of bytes of the body by then.
  private var counted = 0

  /// Returns the time left for more of the body, in milliseconds.
  ///
  /// - Parameter bytes: The number of bytes of the body that have arrived.
  mutating func left(of span: Milliseconds, after bytes: Int) -> Int64 {
    if bytes - counted >= LeastRate.bytes(in: span) {
      counted = bytes
      waited = 0
    }
    return max(0, span.count - waited)
  }

  /// Counts the time of a wait. One that ended so late that the process stood still says nothing about the client.
  ///
  /// - Parameter left: The time for which it was to last at most, in milliseconds.
  mutating func didWait(_ span: Milliseconds, of left: Int64) {
    if span.count - left <= Lateness.tolerance { waited += span.count }
  }
}

/// The pace of a body that is awaited whole: no pause takes longer than a time-out, and the whole no longer than that and
/// a second for each KiB. So a short body has the time-out, and a long one comes through at the rate of the slowest
/// lines.
struct BodyPace {
  /// Bytes per second on average, once the time-out is over.
  static let bytesPerSecond: Int64 = 1024

  /// The time of waiting, in all and since the last byte, in milliseconds.
  private var (waited, paused): (Int64, Int64) = (0, 0)
  /// The number of bytes of the body by then.
  private var counted = 0

  /// Returns the time left for more of the body, in milliseconds.
  ///
  /// - Parameter bytes: The number of bytes of the body that have arrived.
  mutating func left(of span: Milliseconds, after bytes: Int) -> Int64 {
    if bytes > counted { (counted, paused) = (bytes, 0) }
    // No body is larger than 4 GiB, nor a span longer than a century.
    let whole = span.count + Int64(bytes) * 1000 / Self.bytesPerSecond
    return max(0, min(span.count - paused, whole - waited))
  }

  /// Counts the time of a wait. One that ended so late that the process stood still says nothing about the client.
  ///
  /// - Parameter left: The time for which it was to last at most, in milliseconds.
  mutating func didWait(_ span: Milliseconds, of left: Int64) {
    guard span.count - left <= Lateness.tolerance else { return }
    waited += span.count
    paused += span.count
  }

  /// Waits until more of the body has arrived.
  ///
  /// - Parameters:
  ///   - span: The time-out.
  ///   - bytes: The number of bytes of the body that have arrived.
  mutating func wait(
    for arrival: Signal, within span: Milliseconds, after bytes: Int
  ) async throws(Problem) {
    let (left, began) = (left(of: span, after: bytes), NIODeadline.now())
    var deadline = LateDeadline(in: left, now: began)
    while await arrival.wait(milliseconds: deadline.left()) == .timedOut {
      guard !deadline.isOver() else { throw .requestTimeout }
    }
    didWait(Milliseconds(.now() - began), of: left)
  }
}
