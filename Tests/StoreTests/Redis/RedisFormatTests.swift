import Idempotency
import NIOCore
import Store
import TestSupport
import Testing

/// The bytes of records in Redis: those that this version writes, and those of the version before.
@Suite(.timeLimit(.minutes(1)))
struct RedisFormatTests {
  /// A record and its response as the version before wrote them, but for their times.
  private static let oldRecord = """
    1 b4042e8002d713b66b1527f26b63578b completed 1 %1 %2 86400000 2592000000 86400000 ok \
    xXWDcRIsURTkB3wzSQykhO9DQrIgx_ZLFLJYVyJ6HPw 1;auto 201
    """
  private static let oldResponse =
    "\u{1}\u{1}\u{1}\0\0\0\u{20}\0\0\0\0Content-Type: application/json\r\n{\"order\":1}"

  private static func fingerprint() throws -> Fingerprint {
    Fingerprint(
      recipe: try #require(Recipe(text: "1;auto")),
      digest: try #require(Digest256(text: "xXWDcRIsURTkB3wzSQykhO9DQrIgx_ZLFLJYVyJ6HPw")))
  }

  /// Writes the record and its response as the version before did, and returns the record's key.
  private func writeOld(_ id: RecordID, _ server: RedisServer, _ node: RedisNode) throws -> String {
    let key = "\(node.settings.namespace):{\(id.text)}"
    let now = try #require(try server.command(["EVAL", "return redis.call('TIME')[1] .. '000'", "0"]))
    let text = Self.oldRecord.replacing("%1", with: now).replacing("%2", with: now)
    try server.command(["SET", key, text, "PX", "86400000"])
    try server.command(["SET", key + ":r", Self.oldResponse, "PX", "86400000"])
    return key
  }

  @Test func `a record of the version before is replayed, found, refused to another payload, and forgotten`()
    async throws
  {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let id = Samples.id()
      let key = try writeOld(id, server, node)
      let request = Samples.request(id, fingerprint: try Self.fingerprint())
      for _ in 0..<2 {
        guard case .taken(.completed(let record)) = try await node.store.claim(request),
          case .whole(let response) = record.outcome
        else { throw Unexpected(what: "no replay") }
        #expect(response.status == 0x101 && String(buffer: response.body) == #"{"order":1}"#)
        #expect(String(buffer: response.fields) == "Content-Type: application/json\r\n")
      }
      #expect(try await node.store.find(id).completedRecord?.attempt == 1)
      let view = try #require(try await node.store.inspect(id))
      #expect(view.standing.name == .completed && view.attribution == nil)
      let parts = try #require(try server.command(["GET", key])).split(separator: " ")
      #expect(view.firstSeen.milliseconds == Int64(parts[4]))
      let changed = request.changed(
        fingerprint: Samples.fingerprint(try #require(Recipe(text: "1;auto"))))
      #expect(try await node.store.claim(changed) == .mismatch)
      #expect(try await node.store.unreadable().isEmpty)
      #expect(try await node.store.forget(id, fence: .seconds(60)))
      try await node.store.ping()
      #expect(try server.command(["EXISTS", key + ":r"]) == ":0")
    }
  }

  @Test func `an origin stands between recipe and status, where the version before refuses it`() async throws
  {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let origin = Attribution(route: "orders", keyDigest: "6ab9f1eb", callerDigest: "9b943d6d", node: "n1")
      let claim = try await node.store.granted(Samples.request(attribution: origin))
      let key = "\(node.settings.namespace):{\(claim.id.text)}"
      let end = " \(claim.fingerprint.digest.text) 2;auto @orders,6ab9f1eb,9b943d6d,n1"
      func expectEnd(_ end: String, _ place: SourceLocation = #_sourceLocation) throws {
        let text = try #require(try server.command(["GET", key]), sourceLocation: place)
        #expect(text.hasSuffix(end), "\(text)", sourceLocation: place)
      }
      // That version reads an open record up to its recipe, and what follows is nothing to it.
      try expectEnd(" o" + end)
      #expect(try await node.store.markUnknown(claim, because: .timeOut) == .done)
      try expectEnd(" o" + end + ",time_out")
      let outcome = Outcome.statusOnly(status: 201, location: "/7")
      #expect(try await node.store.complete(claim, with: Samples.completion(outcome)).outcome == .done)
      // Of a completed one it reads the status next, and finds no number.
      try expectEnd(" 0 0 -" + end + " 201 /7")
    }
  }

  @Test func `an origin is dropped by a claim of the version before, and nothing else`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request(attribution: Samples.attribution()))
      #expect(try await node.store.release(claim, .remembered) == .done)
      // A claim without one writes what that version writes.
      let second = try await node.store.granted(Samples.again(claim))
      #expect(second.attempt == 2)
      let key = "\(node.settings.namespace):{\(claim.id.text)}"
      let text = try #require(try server.command(["GET", key]))
      #expect(text.hasSuffix(" - \(claim.fingerprint.digest.text) 2;auto"), "\(text)")
      #expect(try await node.store.inspect(claim.id)?.attribution == nil)
    }
  }

  @Test func `a damaged response of the version before is listed, and never a reason to run`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let id = Samples.id()
      let key = try writeOld(id, server, node)
      try server.command(["SET", key + ":r", "garbage"])
      let request = Samples.request(id, fingerprint: try Self.fingerprint())
      let error = await #expect(throws: StoreError.self) { try await node.store.claim(request) }
      guard case .unreadable = error else { throw Unexpected(what: "\(error as Any)") }
      #expect(try await node.store.unreadable() == [id])
      // Evicted: the record states still how it ended.
      try server.command(["DEL", key + ":r"])
      #expect(
        try await node.store.find(id).completedRecord?.outcome == .statusOnly(status: 201, location: nil))
    }
  }

  @Test func `a small response is part of its record, under one key`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      let response = RecordedResponse(
        status: 201, fields: ByteBuffer(string: "A: b\r\n"), body: ByteBuffer(string: "x y"))
      #expect(
        try await node.store.complete(claim, with: Samples.completion(.whole(response))).outcome == .done)
      let key = "\(node.settings.namespace):{\(claim.id.text)}"
      let text = try #require(try server.command(["GET", key]))
      #expect(
        text.hasSuffix(
          " 0 0 e \(claim.fingerprint.digest.text) 2;auto 201 \u{1}\0\u{FFFD}\0\0\0\u{6}\0\0\0\0A: b\r\nx y"),
        "\(text)")
      #expect(try server.command(["KEYS", key.dropLast() + "*"]) == key)
      #expect(try await node.store.find(claim.id).completedRecord?.outcome == .whole(response))
      #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
      #expect(try await node.store.unreadable().isEmpty)
    }
  }

  @Test(arguments: [(900, 20, true), (1100, 20, false), (900, 21, false), (1100, 10, true)])
  func `a small response stays in its record for up to twice its retention`(
    bytes: Int, remember: Int64, isInRecord: Bool
  ) async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      let response = Samples.response(body: String(repeating: "x", count: bytes))
      let completion = Samples.completion(
        .whole(response), retention: .seconds(10), remember: .seconds(remember))
      #expect(try await node.store.complete(claim, with: completion).outcome == .done)
      let own = "\(node.settings.namespace):{\(claim.id.text)}:r:\(hexadecimal(claim.owner))"
      #expect(try server.command(["EXISTS", own]) == (isInRecord ? ":0" : ":1"))
      #expect(try await node.store.find(claim.id).completedRecord?.outcome == .whole(response))
    }
  }

  @Test func `a large response has a key of its owner, which goes with a forgotten record`() async throws {
    let server = try await SharedRedis.server
    try await RedisNode.run(.on(server)) { node in
      let claim = try await node.store.granted(Samples.request())
      let response = Samples.response(body: String(repeating: "x", count: 100_000))
      #expect(
        try await node.store.complete(claim, with: Samples.completion(.whole(response))).outcome == .done)
      let key = "\(node.settings.namespace):{\(claim.id.text)}"
      let own = "\(key):r:\(hexadecimal(claim.owner))"
      #expect(try server.command(["EXISTS", own]) == ":1")
      guard case .taken(.completed(let record)) = try await node.store.claim(Samples.again(claim)) else {
        throw Unexpected(what: "no replay")
      }
      #expect(record.outcome == .whole(response))
      // A superseded owner writes under its own key alone, and takes that away again.
      let late = Samples.again(claim)
      let other = Claim(
        id: claim.id, owner: late.owner, fingerprint: claim.fingerprint, attempt: 1,
        firstSeen: claim.firstSeen, followsUnknown: false, onlyRejectedSoFar: true, lease: claim.lease,
        unknownRetention: claim.unknownRetention, remember: claim.remember, requestedAt: claim.requestedAt)
      let otherResponse = Samples.response(body: String(repeating: "y", count: 100_000))
      let reply = try await node.store.complete(other, with: Samples.completion(.whole(otherResponse)))
      guard case .lost(.completed(let standing)) = reply.outcome else { throw Unexpected(what: "\(reply)") }
      #expect(standing.outcome == .whole(response))
      try await node.store.ping()
      #expect(try server.command(["EXISTS", "\(key):r:\(hexadecimal(other.owner))"]) == ":0")
      #expect(try await node.store.unreadable().isEmpty)
      #expect(try await node.store.forget(claim.id, fence: .seconds(60)))
      try await node.store.ping()
      #expect(try server.command(["EXISTS", own]) == ":0")
    }
  }

  @Test func `a completion whose response Redis refuses is not done until it is repeated`()
    async throws
  {
    let server = try await RedisServer(arguments: [
      "--user", "semel", "on", ">word", "~*", "&*", "+@all",
    ])
    var settings = RedisEndpointSettings.on(server)
    settings.login.user = "semel"
    settings.login.password = "word"
    try await RedisNode.run(settings) { node in
      let claim = try await node.store.granted(Samples.request())
      let completion = Samples.completion(.whole(Samples.response()), remember: .seconds(1300))
      // Only the keys of records may be written, and no response.
      try server.command(["ACL", "SETUSER", "semel", "resetkeys", "~*}", "~*facts"])
      let error = await #expect(throws: StoreError.self) {
        try await node.store.complete(claim, with: completion)
      }
      guard case .refused = error else { throw Unexpected(what: "\(error as Any)") }
      try server.command(["ACL", "SETUSER", "semel", "~*"])
      #expect(try await node.store.complete(claim, with: completion).outcome == .done)
      #expect(try await node.store.find(claim.id).completedRecord?.outcome == completion.outcome)
    }
  }
}
