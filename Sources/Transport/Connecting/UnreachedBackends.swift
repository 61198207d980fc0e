import Platform
import Synchronization

/// The backends to which the last attempt to connect has failed. Shared by all event loops.
public final class UnreachedBackends: Sendable {
  /// The end of the latest attempt to connect.
  public struct Failure: Sendable, Equatable {
    public let reason: String
    /// The time of the failure, in milliseconds since 1970.
    public let time: Int64
  }

  private let failures = Mutex<[String: Failure]>([:])
  /// Whether there is any failure. While there is none, a connection takes no lock.
  private let isAny = Atomic<Bool>(false)

  public init() {}

  /// The failure of an upstream's backend; `nil` if it was reached when a connection was last tried, or none was tried.
  public func failure(of name: String) -> Failure? { failures.withLock { $0[name] } }

  func failed(_ name: String, because reason: String) {
    failures.withLock { failures in
      failures[name] = Failure(reason: reason, time: WallClock.milliseconds())
      isAny.store(true, ordering: .relaxed)
    }
  }

  func connected(_ name: String) {
    guard isAny.load(ordering: .relaxed) else { return }
    failures.withLock { failures in
      failures[name] = nil
      isAny.store(!failures.isEmpty, ordering: .relaxed)
    }
  }
}
