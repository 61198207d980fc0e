import NIOCore
import NIOEmbedded
import Testing

@testable import Proxy

/// The room for connections whose handshake is unfinished.
struct HandshakeRoomTests {
  private static let maxConnections = 40
  private static let share = HandshakeRoom.share(of: maxConnections)

  private static func connected() throws -> EmbeddedChannel {
    let channel = EmbeddedChannel()
    try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
    return channel
  }

  /// Opens so many connections; those that are still open behind the last one.
  private static func open(_ count: Int, _ client: (Int) -> String?) throws -> Int {
    let room = HandshakeRoom()
    let channels = try (0..<count).map { number in
      let channel = try connected()
      _ = room.acquire(channel, from: client(number), maxConnections: maxConnections)
      return channel
    }
    return channels.count { $0.isActive }
  }

  @Test func `one client may use half of the limit`() throws {
    #expect(try Self.open(30) { _ in "192.0.2.1" } == Self.share / 2)
  }

  @Test func `all clients together may use the whole limit`() throws {
    #expect(try Self.open(30) { "192.0.2.\($0)" } == Self.share)
  }

  @Test func `a crowd of one client takes no other client's place`() throws {
    let room = HandshakeRoom()
    let others = try (0..<8).map { number in
      let channel = try Self.connected()
      _ = room.acquire(channel, from: "192.0.2.\(number)", maxConnections: Self.maxConnections)
      return channel
    }
    for _ in 0..<30 {
      // Unknown until its PROXY header has come.
      let channel = try Self.connected()
      let ticket = room.acquire(channel, from: nil, maxConnections: Self.maxConnections)
      room.release(ticket)
      _ = room.acquire(channel, from: "198.51.100.1", maxConnections: Self.maxConnections)
    }
    #expect(others.allSatisfy { $0.isActive })
  }

  @Test func `a crowd of many clients takes the oldest place, not that of an address of many`() throws {
    let room = HandshakeRoom()
    let first = try Self.connected()
    _ = room.acquire(first, from: "192.0.2.1", maxConnections: Self.maxConnections)
    let shared = try (0..<6).map { _ in
      let channel = try Self.connected()
      _ = room.acquire(channel, from: nil, maxConnections: Self.maxConnections)
      return channel
    }
    for number in 0..<Self.share - 6 {
      _ = room.acquire(
        try Self.connected(), from: "198.51.100.\(number)", maxConnections: Self.maxConnections)
    }
    #expect(!first.isActive && shared.allSatisfy { $0.isActive })
  }

  @Test func `an address of many clients bounds none of them`() throws {
    #expect(try Self.open(30) { _ in nil } == Self.share)
  }

  @Test func `a released place is free`() throws {
    let room = HandshakeRoom()
    let first = try Self.connected()
    let ticket = room.acquire(first, from: "192.0.2.1", maxConnections: 8)
    room.release(ticket)
    _ = room.acquire(try Self.connected(), from: "192.0.2.1", maxConnections: 8)
    #expect(first.isActive)
  }
}
