/// A pause that doubles with each failure, up to a maximum. Its unit is the caller's.
public struct Backoff: Equatable, Sendable {
  private let first: Int64
  private let max: Int64
  private var pause: Int64

  public init(first: Int64, max: Int64) {
    self.first = first
    self.max = max
    pause = first
  }

  /// Returns the pause after a failure, and doubles the next one.
  public mutating func next() -> Int64 {
    defer { pause = min(pause * 2, max) }
    return pause
  }

  /// Begins anew after a success.
  public mutating func reset() { pause = first }
}
