/// A moment of the store's own clock, in milliseconds since 1970. Leases and retention are judged by it alone.
package struct StoreInstant: Hashable, Comparable, Sendable {
  package var milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  package static func < (left: StoreInstant, right: StoreInstant) -> Bool {
    left.milliseconds < right.milliseconds
  }

  package static func + (instant: StoreInstant, span: Milliseconds) -> StoreInstant {
    StoreInstant(milliseconds: saturatingSum(instant.milliseconds, span.count))
  }

  package static func - (left: StoreInstant, right: StoreInstant) -> Milliseconds {
    Milliseconds(saturatingDifference(left.milliseconds, right.milliseconds))
  }
}

/// A span of time in whole milliseconds: the unit of every setting and of the stores.
package struct Milliseconds: Hashable, Comparable, Sendable, ExpressibleByIntegerLiteral {
  package var count: Int64

  package init(_ count: Int64) { self.count = count }
  package init(integerLiteral value: Int64) { count = value }

  package static func seconds(_ count: Int64) -> Milliseconds { Milliseconds(count * 1000) }
  package static func < (left: Milliseconds, right: Milliseconds) -> Bool { left.count < right.count }
  package static func + (left: Milliseconds, right: Milliseconds) -> Milliseconds {
    Milliseconds(saturatingSum(left.count, right.count))
  }
  package static func - (left: Milliseconds, right: Milliseconds) -> Milliseconds {
    Milliseconds(saturatingDifference(left.count, right.count))
  }
  package static func / (span: Milliseconds, parts: Int64) -> Milliseconds {
    Milliseconds(span.count / parts)
  }

  /// In whole seconds, rounded up, at least 1: the form of `Retry-After`.
  package var retryAfterSeconds: Int64 { max(1, count / 1000 + (count % 1000 > 0 ? 1 : 0)) }
}

/// A moment of this machine's boot-time clock, in nanoseconds. It goes on while the machine sleeps, and no one sets it.
package struct BootInstant: Hashable, Comparable, Sendable {
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  package static func < (left: BootInstant, right: BootInstant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
  package static func + (instant: BootInstant, span: Milliseconds) -> BootInstant {
    let (nanoseconds, overflow) = span.count.multipliedReportingOverflow(by: 1_000_000)
    guard !overflow else { return BootInstant(nanoseconds: .max) }
    return BootInstant(nanoseconds: saturatingSum(instant.nanoseconds, nanoseconds))
  }
  package static func - (left: BootInstant, right: BootInstant) -> Milliseconds {
    Milliseconds((left.nanoseconds - right.nanoseconds) / 1_000_000)
  }
}

/// The sum, or the greatest value where it would overflow: times far ahead stay far ahead.
private func saturatingSum(_ left: Int64, _ right: Int64) -> Int64 {
  let (sum, overflow) = left.addingReportingOverflow(right)
  return overflow ? (right > 0 ? .max : .min) : sum
}

/// The difference, or the value nearest to it: what a store tells of times is not to be trusted with a trap.
private func saturatingDifference(_ left: Int64, _ right: Int64) -> Int64 {
  let (difference, overflow) = left.subtractingReportingOverflow(right)
  return overflow ? (right < 0 ? .max : .min) : difference
}
