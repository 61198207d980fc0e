/// A map of bounded size that forgets what was written longest ago.
///
/// Entries age in two halves: an entry is written into the younger one, and when that is full the older one is dropped.
public struct AgingMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let half: Int
  private let isKept: (@Sendable (Value) -> Bool)?
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]
  private var turnsAt: Int

  /// Creates an empty map.
  ///
  /// - Parameters:
  ///   - half: The number of entries in each half, at least one.
  ///   - isKept: Whether an old entry is kept all the same. As many of them as there are make the map larger.
  public init(half: Int, keeping isKept: (@Sendable (Value) -> Bool)? = nil) {
    precondition(half > 0, "AgingMap: a half without entries")
    self.half = half
    self.isKept = isKept
    turnsAt = half
  }

  public var count: Int { young.count + old.count }

  public subscript(key: Key) -> Value? {
    get { young[key] ?? old[key] }
    set {
      old[key] = nil
      young[key] = newValue
      if young.count >= turnsAt { turn() }
    }
  }

  private mutating func turn() {
    let retained = isKept.map { isKept in old.filter { isKept($0.value) } } ?? [:]
    old = young
    young = retained
    turnsAt = max(half, 2 * retained.count)
  }
}
