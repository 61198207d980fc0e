import NIOCore
import Platform
import Synchronization

/// The requests with a key that nothing protects, for a log entry once a minute and route: their number, and the shapes
/// of their paths.
///
/// Shared by all event loops. The memory is bounded by the number of routes and `maxShapes`.
final class UnprotectedKeys: Sendable {
  /// The requests of a route since its last log entry.
  struct Entry: Equatable {
    var requests: Int
    /// The method and shape of their paths, each with its number of requests, the most frequent first.
    var shapes: [(text: String, requests: Int)]
    /// The requests of further shapes.
    var others: Int

    static func == (left: Entry, right: Entry) -> Bool {
      left.requests == right.requests && left.others == right.others
        && left.shapes.elementsEqual(right.shapes, by: ==)
    }

    /// The shapes in one line, such as `POST /v2/orders/{id} 12, GET /v2/orders 3, others 1`.
    var text: String {
      let texts = shapes.map { "\($0.text) \($0.requests)" }
      return (texts + (others > 0 ? ["others \(others)"] : [])).joined(separator: ", ")
    }
  }

  /// The maximum number of shapes of one route in one entry. An API has few operations that a route forgot.
  static let maxShapes = 16

  private struct State {
    var pace = LogPace<Int>()
    var shapes: [Int: [String: Int]] = [:]
  }

  private let state = Mutex(State())

  /// Counts a request.
  ///
  /// - Parameters:
  ///   - number: The number of its route; 0 for none.
  ///   - shape: Its method, and the shape of its path.
  /// - Returns: The requests since the last log entry, this one included, if another entry is due.
  func count(_ number: Int, shape: String, at now: NIODeadline) -> Entry? {
    state.withLock { state in
      if state.shapes[number, default: [:]][shape] != nil || state.shapes[number]?.count ?? 0 < Self.maxShapes
      {
        state.shapes[number, default: [:]][shape, default: 0] += 1
      }
      guard let requests = state.pace.count(number, at: now) else { return nil }
      let shapes = (state.shapes.removeValue(forKey: number) ?? [:]).map {
        (text: $0.key, requests: $0.value)
      }
      .sorted { ($1.requests, $0.text) < ($0.requests, $1.text) }
      return Entry(
        requests: requests, shapes: shapes, others: requests - shapes.map(\.requests).reduce(0, +))
    }
  }
}
