/// The random name of one owner of a record: who holds it may complete, release and renew.
package struct OwnerToken: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A new token from the system's generator of random numbers.
  package static func random() -> OwnerToken {
    var generator = SystemRandomNumberGenerator()
    return OwnerToken(high: generator.next(), low: generator.next())
  }
}
