import NIOCore
import Platform
import Synchronization

/// The routes of which something was logged that is logged once for each.
final class NotedRoutes: Sendable {
  private let numbers = Mutex<Set<Int>>([])

  /// Notes a route, and returns whether it is noted for the first time.
  func isFirst(_ number: Int) -> Bool { numbers.withLock { $0.insert(number).inserted } }
}

/// The pace at which events of routes are logged: once a minute for each route.
final class RoutePace: Sendable {
  private let routes = Mutex(LogPace<Int>())

  /// Counts an event.
  ///
  /// - Parameter number: The number of its route; 0 for none.
  /// - Returns: The events since the last log entry, this one included, where another entry is due.
  func count(_ number: Int, at now: NIODeadline) -> Int? {
    routes.withLock { $0.count(number, at: now) }
  }
}
