import Synchronization

/// The state of a store since the start of this process, for readiness probes.
public struct StoreState: Sendable, Equatable {
  public enum Status: Sendable, Equatable {
    /// Not reached yet, for this reason.
    case unreached(String)
    /// Reached, but no claim may be granted, for this reason.
    case refused(String)
    case serving
    /// Unavailable after it was available, or there without taking changes, for this reason.
    case failing(String)
  }

  public private(set) var status: Status
  /// Whether the store was reached and accepted since the start.
  public private(set) var hasServed: Bool

  /// Whether nothing may be claimed although the store is there.
  public var isRefused: Bool { if case .refused = status { true } else { false } }

  public static let serving = StoreState(status: .serving, hasServed: true)
  public static let connecting = StoreState(status: .unreached("no connection stands yet"), hasServed: false)

  /// The store is available.
  public mutating func serves() { self = .serving }

  /// No claim may be granted.
  public mutating func refuses(_ reason: String) { status = .refused(reason) }

  /// The store cannot be reached.
  public mutating func fails(_ reason: String) {
    status = hasServed ? .failing(reason) : .unreached(reason)
  }

  /// The store is there and takes no changes.
  public mutating func hinders(_ reason: String) {
    self = StoreState(status: .failing(reason), hasServed: true)
  }

  /// The combined state of several connections to one store: the worst status of all.
  public static func combined(_ states: [StoreState]) -> StoreState {
    let worst = states.max { $0.rank < $1.rank }
    return StoreState(status: worst?.status ?? .serving, hasServed: states.allSatisfy(\.hasServed))
  }

  private var rank: Int {
    switch status {
    case .serving: 0
    case .failing: 1
    case .unreached: 2
    case .refused: 3
    }
  }
}

extension StoreState.Status: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreached(let reason): "not reached: \(reason)"
    case .refused(let reason): "refused: \(reason)"
    case .serving: "serving"
    case .failing(let reason): "failing: \(reason)"
    }
  }
}

/// The place where a store publishes its state. Safe to use from any thread.
public final class StoreMonitor: Sendable {
  private let current: Mutex<StoreState>

  public init(_ state: StoreState) { current = Mutex(state) }

  public var state: StoreState { current.withLock { $0 } }

  public func serves() { current.withLock { $0.serves() } }
  public func refuses(_ reason: String) { current.withLock { $0.refuses(reason) } }
  public func fails(_ reason: String) { current.withLock { $0.fails(reason) } }
  public func hinders(_ reason: String) { current.withLock { $0.hinders(reason) } }
}
