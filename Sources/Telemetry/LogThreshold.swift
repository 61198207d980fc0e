import Logging
import Synchronization

/// The least severe level that the process logs.
///
/// All loggers of the process share one threshold, so that a reload also reaches the copies that its parts keep.
public final class LogThreshold: Sendable {
  private static let levels = Logger.Level.allCases

  private let index: Atomic<Int>

  public init(_ level: Logger.Level) { index = Atomic(Self.index(of: level)) }

  /// The threshold. Safe to read and set from any thread.
  public var level: Logger.Level {
    get { Self.levels[index.load(ordering: .relaxed)] }
    set { index.store(Self.index(of: newValue), ordering: .relaxed) }
  }

  private static func index(of level: Logger.Level) -> Int { levels.firstIndex(of: level) ?? 0 }
}
