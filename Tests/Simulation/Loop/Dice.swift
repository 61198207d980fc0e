/// Random numbers by a seed. Each purpose has dice of its own, so that one more throw here changes nothing there.
struct Dice: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  /// Dice for one purpose of a world.
  init(_ seed: UInt64, _ purpose: String, _ number: Int = 0) {
    var state = seed ^ 0x5EED_0F_5E3E1
    for byte in purpose.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
    state = (state ^ UInt64(truncatingIfNeeded: number)) &* 0x100_0000_01B3
    self.state = state
    _ = next()
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 up to 1.
  mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53 as UInt64) }

  mutating func chance(_ probability: Double) -> Bool { fraction() < probability }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(1, bound))) }

  /// A number between two others.
  mutating func between(_ low: Double, _ high: Double) -> Double { low + (high - low) * fraction() }

  /// A span between two others, which are in seconds.
  mutating func span(_ low: Double, _ high: Double) -> Span { Span(seconds: between(low, high)) }

  /// One of several kinds by their shares of a hundred; `nil` for the rest.
  mutating func kind<Kind>(of shares: [(Kind, Double)]) -> Kind? {
    var fate = fraction() * 100
    for (kind, share) in shares {
      if fate < share { return kind }
      fate -= share
    }
    return nil
  }
}

/// A span of the world's time.
struct Span {
  var nanoseconds: Int64

  init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }
  init(seconds: Double) { nanoseconds = Int64(seconds * 1e9) }

  static let zero = Span(nanoseconds: 0)

  static func + (left: Span, right: Span) -> Span {
    Span(nanoseconds: left.nanoseconds + right.nanoseconds)
  }
}

/// A moment of the world's time, which every clock in it measures in its own way.
struct Moment: Comparable {
  var nanoseconds: Int64

  static let start = Moment(nanoseconds: 0)

  var seconds: Double { Double(nanoseconds) / 1e9 }

  /// The moment that follows: of two events at one moment, chance decides which is first.
  var next: Moment { Moment(nanoseconds: nanoseconds + 1) }

  static func < (left: Moment, right: Moment) -> Bool { left.nanoseconds < right.nanoseconds }
  static func + (moment: Moment, span: Span) -> Moment {
    Moment(nanoseconds: moment.nanoseconds + span.nanoseconds)
  }
  static func - (left: Moment, right: Moment) -> Span {
    Span(nanoseconds: left.nanoseconds - right.nanoseconds)
  }
  static func - (moment: Moment, span: Span) -> Moment {
    Moment(nanoseconds: moment.nanoseconds - span.nanoseconds)
  }
}
