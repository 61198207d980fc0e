import Idempotency

/// What Semel holds at most, over all routes and event loops.
package struct LimitSettings: Hashable, Sendable {
  /// Of clients.
  package var maxConnections = 10_000
  /// Requests.
  package var maxInFlight = 4096
  /// All bodies held together, in bytes.
  package var bodyMemory = 256 << 20
  /// Of a request's head, in bytes.
  package var headerBytes = 64 << 10
  package var headerTimeout: Milliseconds = .seconds(10)
  package var bodyTimeout: Milliseconds = .seconds(30)
  /// Of a client's connection between two requests.
  package var idleTimeout: Milliseconds = .seconds(75)

  package init() {}
}

extension LimitSettings {
  mutating func read(_ section: Section) {
    section.integer("max_connections", into: &maxConnections, in: 1...1_000_000)
    section.integer("max_in_flight", into: &maxInFlight, in: 1...1_000_000)
    section.size("body_memory", into: &bodyMemory, in: 1 << 20...1 << 40)
    // Less would refuse everyday cookies; more is a flood.
    section.size("header_bytes", into: &headerBytes, in: 1 << 10...1 << 20)
    section.duration("header_timeout", into: &headerTimeout, atLeast: 1)
    section.duration("body_timeout", into: &bodyTimeout, atLeast: 1)
    section.duration("idle_timeout", into: &idleTimeout, atLeast: 1)
  }
}
