import Wire

/// The trace that a request belongs to, and the current span in it (W3C Trace Context, `traceparent`).
public struct TraceContext: Sendable, Hashable {
  /// The length of `traceparent` in version 00, in bytes.
  public static let textLength = 55

  /// The first half of the trace's ID.
  public var traceHigh: UInt64
  /// The second half of the trace's ID.
  public var traceLow: UInt64
  /// The current span's ID.
  public var span: UInt64
  /// Whether the trace is recorded (the `sampled` flag).
  public var isSampled: Bool

  public init(traceHigh: UInt64, traceLow: UInt64, span: UInt64, isSampled: Bool) {
    self.traceHigh = traceHigh
    self.traceLow = traceLow
    self.span = span
    self.isSampled = isSampled
  }

  /// Parses `VERSION-TRACE-SPAN-FLAGS` in lower-case hexadecimal. A later version may append more after the flags.
  public init?(_ text: UnsafeRawBufferPointer) {
    guard text.count >= Self.textLength, text[2] == 0x2D, text[35] == 0x2D, text[52] == 0x2D,
      let version = Self.number(text[0..<2]), version != 0xFF,
      let high = Self.number(text[3..<19]), let low = Self.number(text[19..<35]),
      let span = Self.number(text[36..<52]), let flags = Self.number(text[53..<55])
    else { return nil }
    guard text.count == Self.textLength || version > 0 && text[55] == 0x2D else { return nil }
    // An ID of only zeros is invalid.
    guard high | low != 0, span != 0 else { return nil }
    self.init(traceHigh: high, traceLow: low, span: span, isSampled: flags & 1 != 0)
  }

  /// The trace's ID: 32 hexadecimal digits.
  public var traceText: String { traceHigh.hexText + traceLow.hexText }

  /// The value of `traceparent`.
  public var text: String {
    "00-\(traceText)-\(span.hexText)-\(isSampled ? "01" : "00")"
  }

  /// Returns the same trace with another current span.
  public func speaking(as span: UInt64) -> TraceContext {
    var context = self
    context.span = span
    return context
  }

  private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> UInt64? {
    var number: UInt64 = 0
    for byte in digits {
      switch byte {
      case 0x30...0x39: number = number << 4 | UInt64(byte - 0x30)
      case 0x61...0x66: number = number << 4 | UInt64(byte - 0x57)
      default: return nil
      }
    }
    return number
  }
}
