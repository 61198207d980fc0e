import NIOCore
import Testing
import Wire

/// A peer's SETTINGS_HEADER_TABLE_SIZE on its way to the codec.
struct HeaderTableLimitTests {
  private static func frame(_ kind: UInt8, flags: UInt8 = 0, _ payload: [UInt8]) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), kind, flags, 0, 0, 0, 0] + payload
  }

  private static func setting(_ number: UInt16, _ value: UInt32) -> [UInt8] {
    var bytes = ByteBuffer()
    bytes.writeInteger(number)
    bytes.writeInteger(value)
    return Array(bytes.readableBytesView)
  }

  /// Bytes after the limit, whose reads end wherever `isCut` says.
  private static func limited(_ bytes: [UInt8], preface: Int = 0, cutAfter cut: Int) -> [UInt8] {
    var limit = HeaderTableLimit(prefaceBytes: preface)
    var result: [UInt8] = []
    for part in [bytes.prefix(cut), bytes.dropFirst(cut)] {
      var buffer = ByteBuffer(bytes: part)
      limit.apply(to: &buffer)
      result += buffer.readableBytesView
    }
    return result
  }

  @Test(
    arguments: [
      (0, 0), (100, 100), (4095, 4095), (4096, 4096), (4097, 4096), (4352, 4096), (65_536, 4096),
      (0x0100_0000, 4096), (0x0100_0001, 4096), (UInt32.max, 4096), (0x0000_FFFF, 4096),
    ] as [(UInt32, UInt32)])
  func `a table is no larger than that which every peer begins with`(stated: UInt32, passed: UInt32) {
    func frames(_ size: UInt32) -> [UInt8] {
      Self.frame(0, Self.setting(1, .max)) + Self.frame(4, Self.setting(4, .max >> 1) + Self.setting(1, size))
        + Self.frame(8, [1, 2, 3, 4]) + Self.frame(4, flags: 1, [])
        + Self.frame(4, Self.setting(1, size) + Self.setting(1, 7) + Self.setting(0x101, .max))
    }
    for preface in [0, 24] {
      let bytes = Array(repeating: 4, count: preface) + frames(stated)
      for cut in 0...bytes.count {
        #expect(
          Self.limited(bytes, preface: preface, cutAfter: cut)
            == Array(repeating: 4, count: preface) + frames(passed), "\(cut)")
      }
    }
  }

  @Test func `SETTINGS of a wrong length stay as they are, and the frames after them are found`() {
    let bytes =
      Self.frame(4, Self.setting(2, 1) + [0, 1, 0xFF]) + Self.frame(4, Self.setting(1, 5000))
    let passed =
      Self.frame(4, Self.setting(2, 1) + [0, 1, 0]) + Self.frame(4, Self.setting(1, 4096))
    for cut in 0...bytes.count { #expect(Self.limited(bytes, cutAfter: cut) == passed, "\(cut)") }
  }
}
