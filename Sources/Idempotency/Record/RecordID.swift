import NIOCore
import Wire

/// The identity under which a record is stored, made from caller, endpoint and key.
///
/// The backend receives it as `Idempotency-Request-Id`. It reveals nothing of its origin.
public struct RecordID: Hashable, Sendable, BitwiseCopyable {
  public var digest: Digest256

  public init(_ digest: Digest256) { self.digest = digest }

  /// The text for the backend and for the keys of a store: 43 characters of base64url.
  public var text: String { digest.text }
}

/// The scope of a key among the requests of one method.
public enum EndpointPlace: Sendable {
  /// All requests with one normalised path: `endpoint: path`.
  case path(ByteBuffer)
  /// All requests of one route, given by its name: `endpoint: route`.
  case route(String)
}

extension RecordID {
  /// The id of a record for a caller, an endpoint and a key.
  ///
  /// - Parameters:
  ///   - upstream: The configured name of the upstream.
  ///   - host: The request's host, `nil` for none. Its port makes no difference, and an address counts as none.
  ///   - identityKey: The key that makes the id an HMAC; `nil` for a SHA-256 digest.
  public static func make(
    caller: Caller, upstream: String, host: RequestHost?, method: ByteBuffer, place: EndpointPlace,
    key: IdempotencyKey, under identityKey: IdentityKey? = nil
  ) -> RecordID {
    RecordID(
      FramedHash.digest(under: identityKey) { hash in
        hash.byte(UInt8(ascii: "I"))
        // The version of this encoding. Another encoding would lead to other records.
        hash.number(1)
        caller.framed.withUnsafeBytes { hash.frame($0) }
        hash.frame(upstream)
        let name = host.map { $0.isAddress ? ByteBuffer() : $0.name } ?? ByteBuffer()
        name.withUnsafeReadableBytes { hash.frame($0) }
        method.withUnsafeReadableBytes { hash.frame($0) }
        switch place {
        case .path(let path):
          hash.byte(1)
          path.withUnsafeReadableBytes { hash.frame($0) }
        case .route(let name):
          hash.byte(2)
          hash.frame(name)
        }
        key.bytes.withUnsafeBytes { hash.frame($0) }
      })
  }

  /// The id of the record that a shadowed route keeps about the request. No protected route uses it.
  public var shadowed: RecordID {
    RecordID(
      FramedHash.digest { hash in
        hash.byte(UInt8(ascii: "S"))
        for index in 0..<32 { hash.byte(digest[index]) }
      })
  }

  /// Parses the text form of an id, as `text` returns it.
  public init?(text: String) {
    guard let digest = Digest256(text: text) else { return nil }
    self.init(digest)
  }
}

/// A moment of the store's own clock, in milliseconds since 1970. Leases and retention are judged by this clock alone.
public struct StoreInstant: Hashable, Comparable, Sendable, BitwiseCopyable {
  public var milliseconds: Int64

  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// Creates the time that another program has sent; `nil` if no clock has ever shown it, so that it is no time.
  public init?(received milliseconds: Int64) {
    guard 0...(1 << 53) ~= milliseconds else { return nil }
    self.milliseconds = milliseconds
  }

  public static func < (left: StoreInstant, right: StoreInstant) -> Bool {
    left.milliseconds < right.milliseconds
  }

  public static func + (instant: StoreInstant, span: Milliseconds) -> StoreInstant {
    StoreInstant(milliseconds: saturatingSum(instant.milliseconds, span.count))
  }

  public static func - (left: StoreInstant, right: StoreInstant) -> Milliseconds {
    Milliseconds(saturatingDifference(left.milliseconds, right.milliseconds))
  }
}

/// A span of time in whole milliseconds, the unit of all settings and stores.
public struct Milliseconds: Hashable, Comparable, Sendable, ExpressibleByIntegerLiteral {
  public var count: Int64

  public init(_ count: Int64) { self.count = count }
  public init(integerLiteral value: Int64) { count = value }

  public static func seconds(_ count: Int64) -> Milliseconds { Milliseconds(count * 1000) }
  public static func < (left: Milliseconds, right: Milliseconds) -> Bool { left.count < right.count }
  public static func + (left: Milliseconds, right: Milliseconds) -> Milliseconds {
    Milliseconds(saturatingSum(left.count, right.count))
  }
  public static func - (left: Milliseconds, right: Milliseconds) -> Milliseconds {
    Milliseconds(saturatingDifference(left.count, right.count))
  }
  public static func / (span: Milliseconds, parts: Int64) -> Milliseconds {
    Milliseconds(span.count / parts)
  }

  /// Parses a span that a client or an operator has written, such as `10s` or `500ms`: a whole number of at most nine
  /// digits and one of the units ms, s, m, h and d; `nil` for anything else.
  public init?(text: String) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard digits.count <= 9, let count = Int64(digits) else { return nil }
    switch text.dropFirst(digits.count) {
    case "ms": self.init(count)
    case "s": self = .seconds(count)
    case "m": self = .seconds(60 * count)
    case "h": self = .seconds(3600 * count)
    case "d": self = .seconds(86_400 * count)
    default: return nil
    }
  }

  /// The number of whole seconds for `Retry-After`, rounded up and at least 1.
  public var retryAfterSeconds: Int64 { max(1, count / 1000 + (count % 1000 > 0 ? 1 : 0)) }
}

/// A moment of this machine's boot-time clock, in nanoseconds. The clock runs while the machine sleeps, and is never
/// set.
public struct BootInstant: Hashable, Comparable, Sendable, BitwiseCopyable {
  public var nanoseconds: Int64

  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static func < (left: BootInstant, right: BootInstant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
  public static func + (instant: BootInstant, span: Milliseconds) -> BootInstant {
    let (nanoseconds, overflow) = span.count.multipliedReportingOverflow(by: 1_000_000)
    guard !overflow else { return BootInstant(nanoseconds: .max) }
    return BootInstant(nanoseconds: saturatingSum(instant.nanoseconds, nanoseconds))
  }
  public static func - (instant: BootInstant, span: Milliseconds) -> BootInstant {
    instant + Milliseconds(-span.count)
  }
  public static func - (left: BootInstant, right: BootInstant) -> Milliseconds {
    Milliseconds((left.nanoseconds - right.nanoseconds) / 1_000_000)
  }
}

/// The sum, or the nearest value if it would overflow, so that times far ahead stay far ahead.
private func saturatingSum(_ left: Int64, _ right: Int64) -> Int64 {
  let (sum, overflow) = left.addingReportingOverflow(right)
  return overflow ? (right > 0 ? .max : .min) : sum
}

/// The difference, or the nearest value if it would overflow, so that a store's times cannot trap the process.
private func saturatingDifference(_ left: Int64, _ right: Int64) -> Int64 {
  let (difference, overflow) = left.subtractingReportingOverflow(right)
  return overflow ? (right < 0 ? .max : .min) : difference
}
