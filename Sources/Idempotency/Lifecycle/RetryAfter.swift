import NIOCore
import Wire

/// The backend's `Retry-After` (RFC 9110, section 10.2.3).
public enum RetryAfter: Sendable, Equatable {
  case none
  /// The span from now on.
  case span(Milliseconds)
  /// The field is there and is neither a number of seconds nor a date, or is there twice.
  case unreadable

  /// - Parameter now: The wall clock in seconds since 1970, which is read only if the field has a date.
  public init(of head: MessageHead, now: () -> Int) {
    let fields = head.fields.filter { $0.name == .retryAfter }
    guard let field = fields.first else {
      self = .none
      return
    }
    self =
      fields.count > 1
      ? .unreadable
      : head.bytes.withUnsafeReadableBytes { all in
        let value = UnsafeRawBufferPointer(rebasing: all[field.valueRange])
        // 2^32 seconds are more than any wait, and do not overflow in milliseconds.
        if let seconds = ASCII.decimal(value) { return .span(.seconds(Int64(min(seconds, 1 << 32)))) }
        guard let date = HTTPDate.parse(value, now: now) else { return .unreadable }
        return .span(.seconds(Int64(max(0, date - now()))))
      }
  }
}
