import SimRedis
import TestSupport
import Testing

/// Connections: their bytes, logins, ends and messages.
struct SimRedisConnectionTests {
  private let server = SimRedisServer.test()

  @Test func `commands in any pieces are executed in their order`() throws {
    let bytes = ["SET k v", "GET k", "PING"].flatMap { line in
      line.split(separator: " ").map { Bytes($0.utf8) }.encoded
    }
    for size in 1...bytes.count {
      let peer = try SimPeer(server)
      for start in stride(from: 0, to: bytes.count, by: size) {
        server.receive(Bytes(bytes[start..<min(start + size, bytes.count)]), on: peer.id, at: 0)
      }
      #expect(peer.received() == [.ok, .text("v"), .status("PONG")])
    }
  }

  @Test(arguments: ["*1\r\n#1\r\n", "*x\r\n", "*1\r\n$-1\r\n"])
  func `bytes that are no commands end the connection`(_ text: String) throws {
    let peer = try SimPeer(server)
    server.receive(Bytes(text.utf8), on: peer.id, at: 0)
    #expect(peer.received().first?.isError == true)
    #expect(peer.isClosed)
  }

  @Test func `a server with a password wants it first`() throws {
    let server = SimRedisServer.test { $0.users = ["default": "secret", "semel": "word"] }
    let peer = try SimPeer(server)
    #expect(peer.call("GET", "k") == .error("NOAUTH Authentication required."))
    #expect(
      peer.call("AUTH", "wrong") == .error("WRONGPASS invalid username-password pair or user is disabled."))
    #expect(peer.call("AUTH", "semel", "word") == .ok)
    #expect(peer.call("GET", "k") == .null)
  }

  @Test func `a server has no more connections than its settings allow`() throws {
    let server = SimRedisServer.test { $0.maxClients = 1 }
    _ = try SimPeer(server)
    let second = try SimPeer(server)
    #expect(second.received() == [.error("ERR max number of clients reached")])
    #expect(second.isClosed)
  }

  @Test func `messages arrive in their order at those who subscribe`() throws {
    let (subscriber, publisher) = (try SimPeer(server), try SimPeer(server))
    #expect(subscriber.call("SUBSCRIBE", "c") == .array([.text("subscribe"), .text("c"), .integer(1)]))
    server.receive(
      ["PUBLISH", "c", "1"].map { Bytes($0.utf8) }.encoded
        + ["PUBLISH", "c", "2"].map { Bytes($0.utf8) }.encoded, on: publisher.id, at: 0)
    #expect(
      subscriber.received() == ["1", "2"].map { .array([.text("message"), .text("c"), .text($0)]) })
    subscriber.call("UNSUBSCRIBE", "c")
    #expect(publisher.call("PUBLISH", "c", "3") == .integer(0))
  }

  @Test func `databases have keys of their own`() throws {
    let peer = try SimPeer(server)
    peer.call("SELECT", "1")
    peer.call("SET", "k", "v")
    peer.call("SELECT", "0")
    #expect(peer.call("GET", "k") == .null)
    peer.call("SELECT", "1")
    #expect(peer.call("GET", "k") == .text("v"))
  }

  @Test func `a walk visits each key that remains once, whatever else comes and goes`() throws {
    let peer = try SimPeer(server)
    for index in 0..<200 { peer.call("SET", "k\(index)", "v") }
    var (cursor, found): (String, [String]) = ("0", [])
    repeat {
      guard case .array(let parts)? = peer.call("SCAN", cursor, "MATCH", "k*", "COUNT", "7"),
        case .bulk(let next) = parts[0], case .array(let keys) = parts[1]
      else { throw TestFailure("no step") }
      for case .bulk(let key) in keys { found.append(String(decoding: key, as: UTF8.self)) }
      cursor = String(decoding: next, as: UTF8.self)
      peer.call("DEL", "k\(found.count % 100 + 100)")
      peer.call("SET", "n\(found.count)", "v")
    } while cursor != "0"
    #expect(Set(found).count == found.count)
    #expect(Set(found).isSuperset(of: (0..<100).map { "k\($0)" }))
  }
}
