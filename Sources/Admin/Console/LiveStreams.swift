import Synchronization

/// The open streams of *Live*, each of which is one of the listener's connections.
final class LiveStreams: Sendable {
  /// One stream; its place is free once nobody holds this.
  final class Place: Sendable {
    private let streams: LiveStreams

    fileprivate init(_ streams: LiveStreams) { self.streams = streams }

    deinit { streams.count.subtract(1, ordering: .relaxed) }
  }

  /// The maximum number, of the listener's 64 connections.
  private static let max = 16

  private let count = Atomic<Int>(0)

  /// Takes a place; `nil` if there is none.
  func enter() -> Place? {
    let place = count.add(1, ordering: .relaxed).newValue
    guard place <= Self.max else {
      count.subtract(1, ordering: .relaxed)
      return nil
    }
    return Place(self)
  }
}
