import NIOCore
import Synchronization

/// The pace at which requests with a key that nothing protects are logged: once a minute for each route.
final class UnprotectedKeys: Sendable {
  private struct Route {
    var loggedAt: NIODeadline
    /// Requests since then.
    var count = 0
  }

  private let routes = Mutex<[Int: Route]>([:])

  /// Counts a request.
  ///
  /// - Parameter number: of its route, 0 for none.
  /// - Returns: The requests since the last log entry, this one included, where another entry is due.
  func count(_ number: Int, at now: NIODeadline) -> Int? {
    routes.withLock { routes in
      let last = routes[number]
      if let last, now - last.loggedAt < .minutes(1) {
        routes[number]?.count += 1
        return nil
      }
      routes[number] = Route(loggedAt: now)
      return (last?.count ?? 0) + 1
    }
  }
}
