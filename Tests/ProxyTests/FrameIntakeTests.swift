import NIOCore
import Testing
import Wire

@testable import Proxy

/// The frames that the codec gets to see.
struct FrameIntakeTests {
  private static let magic = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  private static let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
  private static let settingsAck: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]
  private static let data: [UInt8] = [0, 0, 3, 0, 0, 0, 0, 0, 1, 6, 6, 6]

  private static func ping(_ number: UInt8, flags: UInt8 = 0) -> [UInt8] {
    [0, 0, 8, 6, flags, 0, 0, 0, 0] + Array(repeating: number, count: 8)
  }

  /// Reads all bytes in reads of so many; what the codec gets, and the PINGs that are acknowledged here.
  private static func read(
    _ bytes: [UInt8], by size: Int, sent: Int
  ) -> (codec: [UInt8], pings: [[UInt8]]) {
    var frames = WholeFrames(prefaceBytes: FrameIntake.magicBytes)
    var intake = FrameIntake(budget: FrameBudget(max: 1000), maxStreams: 100)
    for _ in 0..<sent { intake.sent(0) }
    var codec: [UInt8] = []
    var pings: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      frames.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      while let piece = frames.next() {
        let passed = intake.read(piece, now: .uptimeNanoseconds(0))
        for piece in passed.bytes { codec += piece.readableBytesView }
        pings += passed.pings.map { Array($0.readableBytesView) }
      }
    }
    return (codec, pings)
  }

  @Test(arguments: [1, 2, 7, 9, 16, 17, 25, 1000])
  func `as many PINGs are taken out as frames were sent, however the bytes arrive`(size: Int) {
    let begin = Array(Self.magic.utf8) + Self.settings
    let bytes = begin + Self.ping(1) + Self.data + Self.ping(2) + Self.ping(3) + Self.data
    let (codec, pings) = Self.read(bytes, by: size, sent: 2)
    #expect(codec == begin + Self.settingsAck + Self.data + Self.ping(3) + Self.data)
    #expect(pings == [Array(repeating: 1, count: 8), Array(repeating: 2, count: 8)])
  }

  /// All that has come goes to the codec behind the head of a frame that is too large, so that a frame after it may not
  /// be whole.
  @Test func `a PING that is cut off behind a frame that is too large is left to the codec`() {
    let begin = Array(Self.magic.utf8) + Self.settings
    let tooLarge: [UInt8] = [0, 0x40, 1, 0, 0, 0, 0, 0, 1] + Array(repeating: 6, count: 16_385)
    for left in 0..<8 {
      let bytes = begin + tooLarge + Self.ping(1).prefix(9 + left)
      let (codec, pings) = Self.read(bytes, by: bytes.count, sent: 5)
      #expect(codec == begin + Self.settingsAck + tooLarge + Self.ping(1).prefix(9 + left))
      #expect(pings.isEmpty)
    }
  }

  @Test func `the streams of DATA are listed, each frame and each part of one`() {
    var intake = FrameIntake(budget: FrameBudget(max: 3), maxStreams: 100)
    func streams(_ bytes: [UInt8]) -> [UInt32] {
      intake.read(ByteBuffer(bytes: bytes), now: .uptimeNanoseconds(0), listsData: true).data
    }
    let other: [UInt8] = [0, 0, 2, 0, 0, 0, 0, 0, 3, 6]
    #expect(streams(Array(Self.magic.utf8) + Self.settings + Self.data + other) == [1, 3])
    #expect(streams([6] + Self.data.dropLast()) == [3, 1])
    #expect(streams([6]) == [1])
    #expect(streams(Self.ping(1)) == [])
  }

  @Test func `without a sent frame the codec sees every PING`() {
    let bytes = Array(Self.magic.utf8) + Self.settings + Self.ping(1)
    let (codec, pings) = Self.read(bytes, by: 1000, sent: 0)
    #expect(codec == Array(Self.magic.utf8) + Self.settings + Self.settingsAck + Self.ping(1))
    #expect(pings.isEmpty)
  }

  @Test(arguments: [1, 5, 30, 39, 1000])
  func `the codec's own settings are acknowledged once, behind the first of the client`(size: Int) {
    let begin = Array(Self.magic.utf8)
    let settings: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]
    // Then its acknowledgement of what it got, and other settings.
    let rest = Self.settingsAck + Self.data + settings
    let (codec, _) = Self.read(begin + settings + rest, by: size, sent: 0)
    #expect(codec == begin + settings + Self.settingsAck + rest)
    // A client that begins with anything else is left to the codec.
    let onStream: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 1]
    for odd in [Self.settingsAck + settings, Self.data + settings, onStream + settings] {
      #expect(Self.read(begin + odd, by: size, sent: 0).codec == begin + odd)
    }
  }

  @Test func `an acknowledgement and a misplaced PING are left to the codec`() {
    let begin = Array(Self.magic.utf8)
    let openBlock: [UInt8] = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82]
    let onStream: [UInt8] = [0, 0, 8, 6, 0, 0, 0, 0, 1] + Array(repeating: 1, count: 8)
    let early = Self.read(begin + Self.ping(1), by: 1000, sent: 50)
    #expect(early.codec == begin + Self.ping(1) && early.pings.isEmpty)
    for odd in [Self.ping(1, flags: 1), onStream, openBlock + Self.ping(1)] {
      let (codec, pings) = Self.read(begin + Self.settings + odd, by: 1000, sent: 50)
      #expect(codec == begin + Self.settings + Self.settingsAck + odd)
      #expect(pings.isEmpty)
    }
  }

  @Test(arguments: [1, 100, 1000])
  func `as many ended streams are known as may be open`(maxStreams: Int) {
    var intake = FrameIntake(budget: FrameBudget(max: 10_000), maxStreams: maxStreams)
    func headers(_ stream: Int) -> [UInt8] {
      [0, 0, 1, 1, 5, 0, 0, UInt8(stream >> 8), UInt8(stream & 0xFF), 0x82]
    }
    let streams = (0..<maxStreams).map { 2 * $0 + 1 }
    let begin = Array(Self.magic.utf8) + Self.settings + streams.flatMap(headers)
    #expect(intake.read(ByteBuffer(bytes: begin), now: .uptimeNanoseconds(0)).fault == nil)
    for stream in streams {
      let passed = intake.read(ByteBuffer(bytes: headers(stream)), now: .uptimeNanoseconds(0))
      #expect(passed.fault == .endedStream)
    }
  }

  @Test func `frames beyond the budget are a flood, and the codec sees those before`() {
    var intake = FrameIntake(budget: FrameBudget(max: 3), maxStreams: 100)
    let begin = Array(Self.magic.utf8) + Self.settings
    let update: [UInt8] = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    let early = intake.read(
      ByteBuffer(bytes: begin + update + Self.data + update), now: .uptimeNanoseconds(0))
    #expect(early.fault == nil)
    let passed = intake.read(ByteBuffer(bytes: Self.data + update + Self.data), now: .uptimeNanoseconds(0))
    #expect(passed.fault == .flood)
    #expect(early.work == 4 && passed.work == 1)
    #expect(passed.bytes.flatMap { Array($0.readableBytesView) } == Self.data)
  }
}
