import Idempotency
import Testing

@testable import Store

/// The waits of one connection for replicas, without a network.
struct ReplicaProofTests {
  private let start = BootInstant(nanoseconds: 1_000_000_000)

  /// Whether the waiting command is written then.
  private func begins(_ proof: inout ReplicaProof, at now: BootInstant) -> Bool { proof.begins(at: now) }

  private func done(at now: Int64) -> ScriptReply {
    ScriptReply(ending: .done, now: StoreInstant(milliseconds: now))
  }

  private static let replies: [(ReplicaDemand?, RedisValue, Bool?)] = [
    (ReplicaDemand(replicas: 2), .integer(2), true), (ReplicaDemand(replicas: 2), .integer(1), false),
    (ReplicaDemand(replicas: 1, isOnDisk: true), .array([.integer(1), .integer(1)]), true),
    (ReplicaDemand(replicas: 1, isOnDisk: true), .array([.integer(1), .integer(0)]), false),
    (ReplicaDemand(replicas: 0, isOnDisk: true), .array([.integer(0), .integer(3)]), false),
    (ReplicaDemand(replicas: 1), .array([.integer(1), .integer(1)]), nil),
    (ReplicaDemand(replicas: 1), .error("ERR WAIT cannot be used with replica instances."), nil),
  ]

  @Test func `a reply says whether there are enough copies`() throws {
    for (demand, reply, isMet) in Self.replies {
      #expect(try #require(demand).isMet(by: reply) == isMet, "\(reply)")
    }
  }

  @Test func `no copies are demanded of memory alone`() throws {
    #expect(ReplicaDemand(replicas: 0) == nil)
    let demand = try #require(ReplicaDemand(replicas: 2))
    #expect(demand.words(for: 125) == ["WAIT", "2", "125"])
    // For ever, by Redis' reading of it.
    #expect(demand.words(for: 0) == ["WAIT", "2", "1"])
    #expect(
      ReplicaDemand(replicas: 0, isOnDisk: true)?.words(for: 50) == ["WAITAOF", "1", "0", "50"])
  }

  @Test func `one wait covers the scripts before it, and the next one those that came meanwhile`() {
    var proof = ReplicaProof(maxShortfall: 500)
    #expect(begins(&proof, at: start) == false)
    for _ in 0..<3 { proof.wrote() }
    #expect(begins(&proof, at: start) == true)
    proof.wrote()
    #expect(begins(&proof, at: start) == false)
    proof.waited(isMet: true, last: nil)
    proof.settled(3)
    #expect(proof.next == .wait)
    #expect(begins(&proof, at: start) == true)
    proof.waited(isMet: true, last: nil)
    proof.settled()
    #expect(proof.next == .rest)
    #expect(begins(&proof, at: start) == false)
  }

  @Test func `replicas count as missing after the time of a call, and are looked for until they are back`() {
    var proof = ReplicaProof(maxShortfall: 500)
    proof.wrote()
    #expect(begins(&proof, at: start) == true)
    proof.waited(isMet: false, last: nil)
    #expect(proof.next == .wait)
    #expect(!proof.isShort(at: start + 499))
    #expect(proof.isShort(at: start + 500))
    #expect(begins(&proof, at: start + 200) == true)
    proof.waited(isMet: false, last: nil)
    // Counted from the first wait.
    #expect(proof.isShort(at: start + 500))
    proof.settled()
    #expect(proof.next == .waitLater)
    #expect(begins(&proof, at: start + 600) == true)
    proof.waited(isMet: true, last: nil)
    #expect(proof.next == .rest)
    #expect(!proof.isShort(at: start + 10_000))
  }

  @Test func `a change needs a wait, and a refusal does not`() {
    var proof = ReplicaProof(maxShortfall: 500)
    for isAwaited in [true, false] {
      let isNeeded = proof.isNeeded(by: done(at: 5), isAwaited: isAwaited)
      #expect(isNeeded == isAwaited)
    }
    for ending in [ScriptReply.Ending.refused("OOM"), .lost("gone"), .timedOut, .redirected(.loading)] {
      let isNeeded = proof.isNeeded(by: ScriptReply(ending: ending), isAwaited: true)
      #expect(!isNeeded)
    }
  }

  @Test func `a lost connection proves nothing of the next one`() {
    var proof = ReplicaProof(maxShortfall: 500)
    proof.wrote()
    #expect(begins(&proof, at: start) == true)
    proof.lost()
    #expect(proof.next == .rest)
    proof.wrote()
    #expect(begins(&proof, at: start) == true)
  }

  @Test func `a completion before a proven script is proven with it, until the clock is set back`() throws {
    let proven: Int64 = 5_000_000_000_000
    func completed(at since: Int64, now: Int64 = proven + 100) throws -> ScriptReply {
      let record =
        "1 \(String(repeating: "a", count: 32)) completed 1 1 \(since) 600000 0 0 - \(Samples.digest().text) 1 201"
      let bytes = "*3\r\n:\(now)\r\n$8\r\nstanding\r\n$\(record.utf8.count)\r\n\(record)\r\n"
      var reader = HiredisReader()
      Array(bytes.utf8).withUnsafeBytes { reader.feed($0) }
      guard let reply = try reader.next() else { throw Unexpected(what: "half a reply") }
      return ScriptReply(reply)
    }
    var proof = ReplicaProof(maxShortfall: 500)
    proof.wrote()
    #expect(begins(&proof, at: start))
    proof.waited(isMet: true, last: StoreInstant(milliseconds: proven))
    proof.settled()
    let replies = [
      try completed(at: proven - 10), try completed(at: proven + 10),
      // A script's own time shows that the clock was set back.
      done(at: proven - 40), try completed(at: proven - 50),
    ]
    let needed = replies.map { proof.isNeeded(by: $0, isAwaited: true) }
    #expect(needed == [false, true, true, true])
  }
}
