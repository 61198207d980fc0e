import Idempotency
import NIOCore
import Testing

@testable import Store

/// Records and responses as Redis holds them, read.
struct RedisRecordTests {
  private static func record(_ text: String, isAttributed: Bool = false) -> RedisRecord? {
    var text = text
    return text.withUTF8 { RedisRecord(UnsafeRawBufferPointer($0), isAttributed: isAttributed) }
  }

  @Test func `every part of a record is parsed`() throws {
    let record = try #require(
      Self.record("1 ab completed 3 100 200 50 7 9 uk fp 1;auto;i=/a%20b 201 /orders/7 and more"))
    #expect(record.state == .completed)
    #expect(record.attempt == 3)
    #expect(record.firstSeen == StoreInstant(milliseconds: 100))
    #expect(record.since == StoreInstant(milliseconds: 200))
    #expect(record.span == 50)
    #expect(record.unknownRetention == 7)
    #expect(record.followsUnknown && record.responsePlace == .sharedKey && !record.onlyRejectedSoFar)
    #expect(record.recipe == "1;auto;i=/a%20b")
    #expect(record.status == 201)
    #expect(record.location == "/orders/7 and more")
  }

  @Test func `a completed record holds its age, and that of an earlier version its first moment`() throws {
    let end = "1700000000200 50 7 9 - fp r 201"
    for first in ["200", "1700000000000"] {
      let record = try #require(Self.record("1 ab completed 3 \(first) \(end)"))
      #expect(record.firstSeen == StoreInstant(milliseconds: 1_700_000_000_000))
    }
    let open = try #require(Self.record("1 ab unknown 3 200 \(end)"))
    #expect(open.firstSeen == StoreInstant(milliseconds: 200))
  }

  @Test func `a record from ahead of the clock has one lease left, and begins by its time`() throws {
    let record = try #require(Self.record("1 ab in_flight 3 900 800 50 7 9 o fp r"))
    #expect(record.firstSeen == StoreInstant(milliseconds: 800))
    for (now, left) in [(100, 50), (800, 50), (849, 1)] as [(Int64, Milliseconds)] {
      let standing = record.standing(now: StoreInstant(milliseconds: now), response: nil)
      #expect(standing == .inFlight(leaseLeft: left, attempt: 3))
    }
  }

  @Test func `the origin stands before the status, and is read for operators alone`() throws {
    let text = "1 ab completed 3 100 200 50 7 9 o fp r @orders,6ab9f1eb,9b943d6d,n 201 /orders/7"
    let record = try #require(Self.record(text))
    #expect(record.status == 201 && record.location == "/orders/7" && record.attribution == nil)
    let view = try #require(Self.record(text, isAttributed: true))
    #expect(view.attribution?.text == "orders,6ab9f1eb,9b943d6d,n")
    #expect(view.status == 201 && view.recipe == "r")
    let open = try #require(
      Self.record("1 ab unknown 3 100 200 0 7 9 o fp r @orders,,,n,time_out", isAttributed: true))
    #expect(open.attribution?.cause == .timeOut && open.attribution?.keyDigest == nil)
    // An origin that cannot be read is not known, and no reason to refuse the record.
    let damaged = try #require(Self.record("1 ab in_flight 3 100 200 50 7 9 o fp r @", isAttributed: true))
    #expect(damaged.attribution == nil && damaged.state == .inFlight)
    #expect(Self.record("1 ab completed 3 100 200 50 7 9 o fp r @orders,,,n") == nil)
  }

  @Test(arguments: [
    "", " ", "2 ab in_flight 1 1 1 1 1 1 - fp r", "1 ab in_flight x 1 1 1 1 1 - fp r",
    "1 ab sleeping 1 1 1 1 1 1 - fp r", "1 ab in_flight 1 1 1 1 1 1 z fp r",
    "1 ab in_flight 1 1 1 1 1 1 - fp",
    "1 ab in_flight 99999999999999999999 1 1 1 1 1 - fp r", "1 ab completed 1 1 1 1 1 1 - fp r",
  ])
  func `a record of an unknown format is refused`(_ text: String) {
    #expect(Self.record(text) == nil)
  }

  @Test(arguments: [
    ("in_flight", 100, 50, 149, Standing.inFlight(leaseLeft: 1, attempt: 2)),
    ("in_flight", 100, 50, 150, .unknown(age: 0, attempt: 2)),
    ("in_flight", 100, 50, 1149, .unknown(age: 999, attempt: 2)),
    ("in_flight", 100, 50, 1150, .expired(attempt: 2)),
    ("unknown", 100, 0, 90, .unknown(age: 0, attempt: 2)),
    ("unknown", 100, 0, 1100, .expired(attempt: 2)),
    ("released", 100, 0, 5000, .released(attempt: 2)),
    ("forgotten", 100, 50, 120, .absent),
    ("completed", 100, 50, 150, .expired(attempt: 2)),
  ])
  func `a record's standing follows from the time`(
    _ state: String, _ since: Int64, _ span: Int64, _ now: Int64, _ standing: Standing
  ) throws {
    let record = try #require(Self.record("1 ab \(state) 2 1 \(since) \(span) 1000 9 - fp r 201"))
    #expect(record.standing(now: StoreInstant(milliseconds: now), response: nil) == standing)
  }

  @Test func `a response at the end of a record is read, and a damaged one is noticed`() throws {
    let head = "1 ab completed 3 100 200 50 7 9 e fp r 201"
    let response = "\u{1}\u{1}\u{23}\0\0\0\u{6}\0\0\0\0A: b\r\nbody of\0 any bytes"
    let record = try #require(Self.record("\(head) \(response)"))
    #expect(record.response?.status == 0x123)
    guard case .whole(let kept) = record.response else { throw Unexpected(what: "\(record)") }
    #expect(String(buffer: kept.body) == "body of\0 any bytes")
    #expect(!record.isResponseDamaged && record.responseKey(now: StoreInstant(milliseconds: 201)) == nil)
    for rest in ["", " ", " \u{3}\(response)", " \u{2}\(response)", " \(response.prefix(14))"] {
      let damaged = try #require(Self.record(head + rest))
      #expect(damaged.isResponseDamaged)
    }
  }

  @Test func `the key of a response names its owner`() throws {
    for (flag, place) in [("b", "r:000000000000000000000000000000ab"), ("k", "r"), ("-", nil)] {
      let record = try #require(Self.record("1 ab completed 3 100 200 50 7 9 \(flag) fp r 201"))
      #expect(record.responseKey(now: StoreInstant(milliseconds: 249)) == place)
      #expect(record.responseKey(now: StoreInstant(milliseconds: 250)) == nil)
    }
  }

  @Test func `a response is read back from its form`() throws {
    let response = RecordedResponse(
      status: 204, fields: ByteBuffer(string: "A: b\r\n"), body: ByteBuffer(bytes: 0...255),
      trailers: ByteBuffer(string: "T: u\r\n"))
    var buffer = ByteBuffer()
    buffer.writeCommand(capacity: 4096) { RedisResponse.plain(response).write(to: &$0) }
    #expect(buffer.readableBytes == RedisResponse.plain(response).length)
    #expect(RedisResponse.read(buffer) == .plain(response))
    for length in 0..<11 + 12 {
      #expect(RedisResponse.read(try #require(buffer.getSlice(at: 0, length: length))) == nil)
    }
    buffer.setInteger(UInt8(3), at: 0)
    #expect(RedisResponse.read(buffer) == nil)
  }

  @Test func `an encoded response is read back from its form`() throws {
    let response = RedisResponse.encoded(status: 204, ByteBuffer(bytes: 0...255))
    var buffer = ByteBuffer()
    buffer.writeCommand(capacity: 4096) { response.write(to: &$0) }
    #expect(buffer.readableBytes == response.length)
    #expect(RedisResponse.read(buffer) == response)
    for length in 0..<buffer.readableBytes {
      #expect(RedisResponse.read(try #require(buffer.getSlice(at: 0, length: length))) == nil)
    }
    buffer.writeInteger(UInt8(0))
    #expect(RedisResponse.read(buffer) == nil)
  }

  @Test func `an encoded record says so, with its location and its response`() throws {
    let head = "1 ab completed 3 100 200 50 7 9"
    let now = StoreInstant(milliseconds: 201)
    let evicted = try #require(Self.record("\(head) bx fp r 201 TG9j"))
    #expect(
      evicted.standing(now: now, response: nil).encodedOutcome
        == EncodedOutcome(status: 201, location: "TG9j", response: nil))
    let whole = try #require(
      Self.record("\(head) ex fp r 201 \u{2}\0\u{7B}\0\0\0\u{2}\0\0\0\0ab"))
    #expect(
      whole.standing(now: now, response: nil).encodedOutcome
        == EncodedOutcome(status: 123, location: nil, response: ByteBuffer(string: "ab")))
  }

  @Test(
    arguments: [
      ("", nil), ("A: b\r\n", nil), ("Location: /a\r\n", "/a"), ("A: b\r\nlocation:/b \r\nC: d\r\n", "/b "),
      ("Content-Location: /c\r\n", nil), ("Locations: /d\r\n", nil), ("Location:\r\n", ""),
    ] as [(String, String?)])
  func `the place of a result is found among the fields`(_ fields: String, _ location: String?) {
    let response = RecordedResponse(status: 201, fields: ByteBuffer(string: fields), body: ByteBuffer())
    #expect(response.location == location)
  }
}
