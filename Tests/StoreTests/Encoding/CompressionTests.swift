import Idempotency
import NIOCore
import TestSupport
import Testing

@testable import Store

/// Outcomes as a store that compresses keeps them.
struct CompressionTests {
  private static let codec = OutcomeCodec(compression: .unsealed, maxContent: 1 << 20)
  private static let sealing = OutcomeCodec(
    secrets: ["the secret of this test"], compression: .all, maxContent: 1 << 20)
  private static let key = Samples.key("k")

  /// Text of so many bytes, in which few sequences repeat.
  private static func text(_ count: Int) -> ByteBuffer {
    var generator = SeededGenerator(seed: UInt64(count))
    return ByteBuffer(bytes: (0..<count).map { _ in UInt8.random(in: 0x61...0x70, using: &generator) })
  }

  /// Bytes of which no compression saves a tenth.
  private static func noise(_ count: Int) -> ByteBuffer {
    var generator = SeededGenerator(seed: UInt64(count))
    return ByteBuffer(bytes: (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
  }

  private static func response(
    _ body: ByteBuffer, _ fields: String = "Content-Type: application/json\r\n"
  ) -> RecordedResponse {
    RecordedResponse(
      status: 201, fields: ByteBuffer(string: fields + "Location: /v1/orders/7\r\n"), body: body,
      trailers: ByteBuffer(string: "X-Sum: 7\r\n"))
  }

  /// The stored form of a text of 10,000 bytes.
  private static func compressed(_ codec: OutcomeCodec, _ id: RecordID) throws -> EncodedOutcome {
    guard case .encoded(let encoded) = try codec.encoded(.whole(response(text(10_000))), of: id, key) else {
      throw Unexpected(what: "not compressed")
    }
    return encoded
  }

  @Test(arguments: [0, 1, 4095, 4096, 4097, 65_535, 65_536, 1_000_000])
  func `each body comes back byte for byte, and is compressed where that pays`(_ count: Int) throws {
    let id = Samples.id()
    for body in [Self.text(count), Self.noise(count)] {
      let outcome = Outcome.whole(Self.response(body))
      let stored = try Self.codec.encoded(outcome, of: id, Self.key)
      let pays = count >= 4096 && body == Self.text(count)
      guard case .encoded(let encoded) = stored else {
        #expect(!pays && stored == outcome, "\(count)")
        continue
      }
      #expect(pays && encoded.status == 201)
      #expect(try #require(encoded.response).readableBytes < count * 6 / 10 + 100)
      #expect(try Self.codec.decoded(encoded, of: id, nil) == outcome)
      // Whatever a node compresses itself, it reads.
      #expect(try OutcomeCodec.plain.decoded(encoded, of: id, nil) == outcome)
      #expect(try Self.sealing.decoded(encoded, of: id, nil) == outcome)
    }
    for body in [Self.text(count), Self.noise(count)] {
      let outcome = Outcome.whole(Self.response(body))
      guard case .encoded(let sealed) = try Self.sealing.encoded(outcome, of: id, Self.key) else {
        throw Unexpected(what: "not sealed")
      }
      #expect(try Self.sealing.decoded(sealed, of: id, Self.key) == outcome)
      #expect(try Self.sealing.decoded(sealed, of: id, nil) == .encoded(sealed))
    }
  }

  @Test func `by default what is sealed is not compressed`() throws {
    let codec = OutcomeCodec(secrets: ["the secret of this test"], compression: .unsealed)
    let sealed = try Self.compressed(codec, Samples.id())
    #expect(try #require(sealed.response).readableBytes > 10_000)
    #expect(codec.compressedBytes.plain == 0 && codec.compressedBytes.stored == 0)
  }

  @Test func `what is compressed is counted before and after`() throws {
    let codec = OutcomeCodec(compression: .unsealed)
    let encoded = try Self.compressed(codec, Samples.id())
    #expect(codec.compressedBytes.plain > 10_000)
    let stored = try #require(encoded.response).readableBytes
    #expect(codec.compressedBytes.stored < stored && codec.compressedBytes.stored > stored - 20)
  }

  @Test(arguments: [
    ("image/png", false), ("IMAGE/JPEG; q=1", false), ("image/svg+xml", true), ("video/mp4", false),
    ("application/zip", false), ("application/epub+zip", false), ("font/woff2", false), ("text/html", true),
    ("application/json;charset=utf-8", true), ("application/octet-stream", true),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", false), ("nonsense", true),
  ]) func `compressed types are left alone`(type: String, isCompressed: Bool) throws {
    let response = Self.response(Self.text(5000), "content-TYPE: \(type)\r\n")
    #expect(Self.codec.keepsAsIs(.whole(response)) != isCompressed)
  }

  @Test func `a coded body is left alone`() throws {
    for (coding, isCompressed) in [("gzip", false), ("br", false), ("identity", true)] {
      let response = Self.response(Self.text(5000), "Content-Encoding: \(coding)\r\n")
      #expect(Self.codec.keepsAsIs(.whole(response)) != isCompressed)
    }
  }

  @Test func `what this process could not read again is not compressed`() throws {
    let outcome = Outcome.whole(Self.response(Self.text(1 << 20)))
    #expect(try Self.codec.encoded(outcome, of: Samples.id(), nil) == outcome)
  }

  @Test func `a location outlives its compressed response`() throws {
    let id = Samples.id()
    for (codec, key) in [(Self.codec, nil), (Self.sealing, Self.key)] as [(OutcomeCodec, IdempotencyKey?)] {
      let encoded = try Self.compressed(codec, id)
      #expect(encoded.location?.contains(" ") == false)
      let evicted = EncodedOutcome(status: 201, location: encoded.location, response: nil)
      #expect(try codec.decoded(evicted, of: id, key) == .statusOnly(status: 201, location: "/v1/orders/7"))
    }
  }

  /// A version before this one reads sealed envelopes alone, and refuses each other coding as unreadable.
  @Test func `the version before refuses what is compressed`() throws {
    let id = Samples.id()
    for codec in [Self.codec, Self.sealing] {
      let encoded = try Self.compressed(codec, id)
      let bytes = try #require(encoded.response)
      let coding = try #require(bytes.getInteger(at: bytes.readerIndex + 1, as: UInt8.self))
      #expect(coding & ~3 != 0 || coding & 1 == 0)
    }
    let location = try #require(try Self.compressed(Self.codec, id).location)
    // Version 1, coding 0.
    #expect(location.hasPrefix("AQ"))
  }
}

/// Damaged and hostile frames.
extension CompressionTests {
  private func expectUnreadable(_ bytes: ByteBuffer, _ reason: String? = nil) {
    let outcome = EncodedOutcome(status: 201, location: nil, response: bytes)
    let error = #expect(throws: StoreError.self) {
      try Self.codec.decoded(outcome, of: Samples.id(), nil)
    }
    guard case .unreadable(let text) = error else {
      Issue.record("\(error as Any)")
      return
    }
    if let reason { #expect(text == reason) }
  }

  /// An envelope of a frame, with any length.
  private func envelope(_ frame: ByteBuffer, length: Int) -> ByteBuffer {
    var bytes = ByteBuffer(bytes: [1, 4])
    bytes.writeInteger(UInt32(length))
    bytes.writeImmutableBuffer(frame)
    return bytes
  }

  @Test func `no damage yields another response`() throws {
    let id = Samples.id()
    let outcome = Outcome.whole(Self.response(Self.text(10_000)))
    let whole = try #require(try Self.compressed(Self.codec, id).response)
    for index in 0..<whole.readableBytes {
      var changed = whole
      let bit = UInt8(1) << (index % 8)
      changed.setInteger(try #require(whole.getInteger(at: index, as: UInt8.self)) ^ bit, at: index)
      let damaged = EncodedOutcome(status: 201, location: nil, response: changed)
      // A frame has a bit without a meaning.
      if let decoded = try? Self.codec.decoded(damaged, of: id, nil) { #expect(decoded == outcome) }
      expectUnreadable(try #require(whole.getSlice(at: 0, length: index)))
    }
    var longer = whole
    longer.writeInteger(UInt8(0))
    expectUnreadable(longer, OutcomeCodec.damaged)
  }

  @Test func `a wrong length is refused`() throws {
    let content = Self.text(10_000)
    let frame = try #require(ZstandardFrame.compressing(content, maxLength: 10_000))
    #expect(ZstandardFrame.content(of: frame, length: 10_000) == content)
    for length in [0, 1, 9999, 10_001, 1 << 20] {
      expectUnreadable(envelope(frame, length: length), OutcomeCodec.damaged)
    }
    expectUnreadable(envelope(frame, length: 1 << 30), OutcomeCodec.tooLarge)
    expectUnreadable(envelope(ByteBuffer(), length: 1), OutcomeCodec.damaged)
    // A frame of the right length whose content is no response.
    expectUnreadable(envelope(frame, length: 10_000), OutcomeCodec.otherFormat)
  }

  @Test func `what the largest max_response_body lets be recorded stays readable`() {
    // A store's codec is made without a limit of the configuration, which may have been lowered.
    #expect(OutcomeCodec.maxContent > 2 << 30)
  }

  @Test func `a bomb is refused before it is unpacked`() throws {
    let zeros = ByteBuffer(repeating: 0, count: 16 << 20)
    let frame = try #require(ZstandardFrame.compressing(zeros, maxLength: 64 << 10))
    expectUnreadable(envelope(frame, length: zeros.readableBytes), OutcomeCodec.tooLarge)
    expectUnreadable(envelope(frame, length: 1000), OutcomeCodec.damaged)
  }

  @Test func `several frames, and one behind another, are refused`() throws {
    let frame = try #require(ZstandardFrame.compressing(Self.text(5000), maxLength: 5000))
    var twice = frame
    twice.writeImmutableBuffer(frame)
    #expect(ZstandardFrame.content(of: twice, length: 5000) == nil)
    #expect(ZstandardFrame.content(of: twice, length: 10_000) == nil)
    // A frame that is to be skipped, of four bytes.
    let skipped = ByteBuffer(bytes: [0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 1, 2, 3, 4])
    #expect(ZstandardFrame.content(of: skipped, length: 0) == nil)
  }

  @Test func `the stated length of a sealed response is authenticated`() throws {
    let id = Samples.id()
    let sealed = try #require(try Self.compressed(Self.sealing, id).response)
    var changed = sealed
    let length = try #require(sealed.getInteger(at: 2, as: UInt32.self))
    changed.setInteger(length + 1, at: 2)
    #expect(throws: StoreError.unreadable(OutcomeCodec.broken)) {
      let outcome = EncodedOutcome(status: 201, location: nil, response: changed)
      return try Self.sealing.decoded(outcome, of: id, Self.key)
    }
  }
}
