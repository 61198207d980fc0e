import Wire

/// The state machine of one batch: the order in which its items are claimed, sent, waited for and responded to.
/// Performs no I/O. `ClaimLifecycle` decides on each item.
///
/// Claims are taken in the order of the records' ids. No item is waited for while the batch holds a claim, so that two
/// batches with the same items in any order never wait for each other (Tests/Model/batch.pml).
public struct BatchLifecycle: Sendable {
  /// The state of one item.
  enum Item: Equatable, Sendable {
    /// Its record is to be claimed.
    case open
    /// Another delivery holds its record, and `leaseLeft` is the rest of its lease.
    case waiting(leaseLeft: Milliseconds)
    /// The batch owns its record.
    case owned
    /// Its result is known, or its refusal.
    case ended
  }

  /// The runner's next step.
  public enum Step: Equatable, Sendable {
    /// Claim these items' records, in this order.
    case claim([Int])
    /// Send these items, all of which the batch owns, as one request; then end each.
    case send([Int])
    /// Wait until one of these items' records may have changed. The batch owns none.
    case wait([Int], leaseLeft: Milliseconds)
    case respond
  }

  private var items: [Item]
  /// The items in the order of their records' ids.
  private let order: [Int]

  /// - Parameter ids: The ids of the items' records, no two of which are the same.
  public init(_ ids: [RecordID]) {
    items = Array(repeating: .open, count: ids.count)
    order = ids.indices.sorted { ids[$0].precedes(ids[$1]) }
  }

  public var next: Step {
    let open = order.filter { items[$0] == .open }
    guard open.isEmpty else { return .claim(open) }
    let owned = items.indices.filter { items[$0] == .owned }
    guard owned.isEmpty else { return .send(owned) }
    var shortest: Milliseconds?
    let waiting = order.filter { index in
      guard case .waiting(let left) = items[index] else { return false }
      shortest = min(shortest ?? left, left)
      return true
    }
    guard let shortest else { return .respond }
    return .wait(waiting, leaseLeft: shortest)
  }

  /// The store has granted an item's claim.
  public mutating func granted(_ index: Int) {
    invariant(items[index] == .open, "a claim that was not requested is granted")
    items[index] = .owned
  }

  /// Another delivery holds an item's record.
  public mutating func held(_ index: Int, leaseLeft: Milliseconds) {
    invariant(items[index] == .open, "a claim that was not requested is refused")
    items[index] = .waiting(leaseLeft: leaseLeft)
  }

  /// The batch does not own an item's record any more, which is to be claimed again.
  public mutating func superseded(_ index: Int) {
    invariant(items[index] == .owned, "an item that was not owned is superseded")
    items[index] = .open
  }

  /// An item's result or refusal is known.
  public mutating func ended(_ index: Int) {
    invariant(items[index] != .ended, "an item ends twice")
    items[index] = .ended
  }

  /// A record that was waited for may have changed: all that are waited for are claimed again.
  public mutating func changed() {
    for index in items.indices {
      invariant(items[index] != .owned, "a batch waits while it holds a claim")
      if case .waiting = items[index] { items[index] = .open }
    }
  }
}

extension RecordID {
  /// The order in which a batch claims records.
  fileprivate func precedes(_ other: RecordID) -> Bool {
    for word in 0..<4 where digest.words[word] != other.digest.words[word] {
      return digest.words[word] < other.digest.words[word]
    }
    return false
  }
}
