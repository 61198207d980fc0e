import Foundation
import Idempotency
import NIOCore
import Testing

@testable import Store

/// Outcomes as a store with secrets keeps them.
struct OutcomeCodecTests {
  private static let old = OutcomeCodec(secrets: ["the older secret"])
  private static let new = OutcomeCodec(secrets: ["the newer secret"])
  private static let rotated = OutcomeCodec(secrets: ["the newer secret", "the older secret"])

  private static let response = RecordedResponse(
    status: 201, fields: ByteBuffer(string: "Location: /v1/needles/7\r\nX-Needle: n33dle\r\n"),
    body: ByteBuffer(string: #"{"needle":"n33dle"}"#), trailers: ByteBuffer(string: "X-Trailer: n33dle\r\n"))

  static let outcomes: [Outcome] = [
    .whole(response), .whole(RecordedResponse(status: 204, fields: ByteBuffer(), body: ByteBuffer())),
    .whole(Samples.response(body: String(repeating: "n33dle ", count: 50_000))),
    .statusOnly(status: 202, location: "/v1/needles/8"), .statusOnly(status: 202, location: ""),
  ]

  private static func sealed(
    _ outcome: Outcome, _ codec: OutcomeCodec = old, of id: RecordID, _ key: IdempotencyKey?
  ) throws -> EncodedOutcome {
    guard case .encoded(let encoded) = try codec.encoded(outcome, of: id, key) else {
      throw Unexpected(what: "not encoded")
    }
    return encoded
  }

  @Test(arguments: outcomes, [nil, Samples.key("k")])
  func `what was sealed is opened, and shows nothing`(_ outcome: Outcome, _ key: IdempotencyKey?) throws {
    let id = Samples.id()
    let sealed = try Self.sealed(outcome, of: id, key)
    #expect(try Self.old.decoded(sealed, of: id, key) == outcome)
    #expect(sealed.status == outcome.status)
    for text in [sealed.location ?? "", String(buffer: sealed.response ?? ByteBuffer())] {
      #expect(!text.contains("eedle") && !text.contains("33dle"), "\(text.prefix(200))")
    }
    #expect(sealed.location?.contains(" ") != true)
    // With random nonces, equal responses do not look alike.
    #expect(try Self.sealed(outcome, of: id, key) != sealed)
  }

  @Test func `a location outlives its response`() throws {
    let id = Samples.id()
    let sealed = try Self.sealed(.whole(Self.response), of: id, Samples.key("k"))
    let evicted = EncodedOutcome(status: 201, location: sealed.location, response: nil)
    #expect(
      try Self.old.decoded(evicted, of: id, Samples.key("k"))
        == .statusOnly(status: 201, location: "/v1/needles/7"))
  }

  @Test func `without secrets nothing is changed, and a status alone needs no sealing`() throws {
    let id = Samples.id()
    for outcome in Self.outcomes {
      #expect(try OutcomeCodec.plain.encoded(outcome, of: id, Samples.key("k")) == outcome)
    }
    let bare = Outcome.statusOnly(status: 200, location: nil)
    #expect(try Self.old.encoded(bare, of: id, Samples.key("k")) == bare)
  }

  @Test func `the first secret seals, and each one opens`() throws {
    let (id, key) = (Samples.id(), Samples.key("k"))
    let before = try Self.sealed(.whole(Self.response), of: id, key)
    let after = try Self.sealed(.whole(Self.response), Self.rotated, of: id, key)
    #expect(try Self.rotated.decoded(before, of: id, key) == .whole(Self.response))
    #expect(try Self.rotated.decoded(after, of: id, key) == .whole(Self.response))
    #expect(try Self.new.decoded(after, of: id, key) == .whole(Self.response))
    #expect(throws: StoreError.unreadable(OutcomeCodec.lostSecret)) {
      try Self.old.decoded(after, of: id, key)
    }
    #expect(throws: StoreError.unreadable(OutcomeCodec.lostSecret)) {
      try OutcomeCodec.plain.decoded(after, of: id, key)
    }
  }

  @Test func `a client's key is needed, but not for what an operator recorded`() throws {
    let (id, key) = (Samples.id(), Samples.key("k"))
    let sealed = try Self.sealed(.whole(Self.response), of: id, key)
    #expect(try Self.old.decoded(sealed, of: id, nil) == .encoded(sealed))
    #expect(throws: StoreError.unreadable(OutcomeCodec.broken)) {
      try Self.old.decoded(sealed, of: id, Samples.key("l"))
    }
    #expect(throws: StoreError.unreadable(OutcomeCodec.lostSecret)) {
      try Self.new.decoded(sealed, of: id, nil)
    }
    let byOperator = try Self.sealed(.whole(Self.response), of: id, nil)
    #expect(try Self.old.decoded(byOperator, of: id, key) == .whole(Self.response))
    #expect(try Self.old.decoded(byOperator, of: id, nil) == .whole(Self.response))
  }

  @Test func `what is moved to another record, place or status is not opened`() throws {
    let (id, key) = (Samples.id(), Samples.key("k"))
    let sealed = try Self.sealed(.whole(Self.response), of: id, nil)
    let moved = [
      (Samples.id(), sealed),
      (id, EncodedOutcome(status: 200, location: nil, response: sealed.response)),
      (id, EncodedOutcome(status: 201, location: try #require(sealed.response).base64, response: nil)),
    ]
    for (id, outcome) in moved {
      for key in [nil, key] {
        #expect(throws: StoreError.unreadable(OutcomeCodec.broken)) {
          try Self.old.decoded(outcome, of: id, key)
        }
      }
    }
  }

  @Test func `each changed or missing byte is noticed`() throws {
    let (id, key) = (Samples.id(), Samples.key("k"))
    let sealed = try #require(try Self.sealed(.whole(Self.response), of: id, key).response)
    for index in 0..<sealed.readableBytes {
      for bit in 0..<8 {
        var changed = sealed
        changed.setInteger(try #require(sealed.getInteger(at: index, as: UInt8.self)) ^ 1 << bit, at: index)
        try expectRefused(changed, id, key)
      }
      try expectRefused(try #require(sealed.getSlice(at: 0, length: index)), id, key)
    }
    var longer = sealed
    longer.writeInteger(UInt8(0))
    try expectRefused(longer, id, key)
  }

  private func expectRefused(_ bytes: ByteBuffer, _ id: RecordID, _ key: IdempotencyKey) throws {
    let outcome = EncodedOutcome(status: 201, location: nil, response: bytes)
    #expect(throws: StoreError.self) { try Self.old.decoded(outcome, of: id, key) }
  }

  @Test func `what one version sealed, later ones open`() throws {
    let id = try #require(RecordID(text: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"))
    let response = ByteBuffer(base64: Self.golden)
    let outcome = EncodedOutcome(status: 201, location: nil, response: response)
    #expect(try Self.old.decoded(outcome, of: id, Samples.key("k")) == .whole(Self.response))
  }

  /// `response`, sealed in version 1 of the format by another program, with Python's cryptography.
  private static let golden =
    "AQNhdIzNZGVmZ2hpamtsbW5v9ZqAGHKxB3G70BY9wqqcrqW0wYkrL4pbRrTYBw6JtcjOazDguYljdTAZRtjlsQEkmblF7K0yg7f1talTHFGu44"
    + "h9p4ueK18pJ0bbG1HBtMG369XDuvmDWmYY3DRs0Rn3gYEyoEazMUoj"
}

extension ByteBuffer {
  fileprivate var base64: String { Data(readableBytesView).base64EncodedString() }

  fileprivate init(base64: String) { self.init(bytes: Data(base64Encoded: base64) ?? Data()) }
}
