import NIOCore
import Testing

@testable import Proxy

/// The order in which connections are closed for new ones.
struct RestingConnectionsTests {
  private static func second(_ number: Int64) -> NIODeadline {
    NIODeadline.uptimeNanoseconds(0) + .seconds(number)
  }

  /// Connections of these clients, each of which has rested since a second of its own; those without do not rest.
  private static func order(_ connections: [(client: String?, since: Int64?)]) -> [Int64] {
    var resting = RestingConnections()
    resting.search(
      connections.enumerated().map { number, connection in
        .init(
          id: number, client: connection.client.map { .address($0) },
          restingSince: connection.since.map(second))
      }, at: second(100))
    var order: [Int64] = []
    while let next = resting.next(), let since = next.restingSince {
      order.append((since - second(0)).nanoseconds / 1_000_000_000)
    }
    return order
  }

  @Test func `the one that has rested longest is the first, of the client that has most`() {
    #expect(Self.order([("a", 1), ("b", 4), ("b", 3), ("b", 2)]) == [2, 3, 1, 4])
    #expect(Self.order([("a", 3), ("b", 1), ("c", 2)]) == [1, 2, 3])
  }

  @Test func `connections that do not rest are not closed, but count among their client's`() {
    #expect(Self.order([("a", 1), ("b", 9), ("b", nil), ("b", nil)]) == [9, 1])
    #expect(Self.order([("a", nil), ("b", nil)]).isEmpty)
  }

  @Test func `all connections are looked at once in a while, not for each new one`() {
    var resting = RestingConnections()
    #expect(resting.isSearchDue(at: Self.second(1)))
    resting.search([], at: Self.second(1))
    #expect(!resting.isSearchDue(at: Self.second(1)) && resting.isSearchDue(at: Self.second(2)))
    resting.search(
      (0..<300).map { .init(id: $0, client: nil, restingSince: Self.second(1)) },
      at: Self.second(2))
    #expect(!resting.isSearchDue(at: Self.second(9)))
    for _ in 0..<RestingConnections.maxFound { #expect(resting.next() != nil) }
    #expect(resting.next() == nil && resting.isSearchDue(at: Self.second(9)))
  }
}
