import Platform
import Wire

/// The format of times in log entries and documents: RFC 3339 in UTC with milliseconds, such as
/// `2026-01-31T08:15:30.042Z`.
public enum Timestamp {
  static let length = 24

  private static let template: StaticString = "1970-01-01T00:00:00.000Z"
  private static let last: Int64 = 253_402_300_799_999

  /// Returns the present time.
  public static func now() -> String { text(milliseconds: WallClock.milliseconds()) }

  /// Returns a time, given in milliseconds since 1970.
  public static func text(milliseconds: Int64) -> String {
    String(unsafeUninitializedCapacity: length) { space in
      guard let start = space.baseAddress else { return 0 }
      write(milliseconds: milliseconds, to: start)
      return length
    }
  }

  /// Writes a time, in milliseconds since 1970 and clamped to the years 1970 to 9999.
  static func write(milliseconds: Int64, to place: UnsafeMutableRawPointer) {
    let time = Int(min(max(milliseconds, 0), last))
    let (seconds, rest) = (time / 1000, time % 1000)
    let date = CivilDate(days: seconds / 86_400)
    place.copyMemory(from: template.utf8Start, byteCount: length)
    ASCII.writeTwoDigits(date.year / 100, to: place)
    ASCII.writeTwoDigits(date.year % 100, to: place + 2)
    ASCII.writeTwoDigits(date.month, to: place + 5)
    ASCII.writeTwoDigits(date.day, to: place + 8)
    ASCII.writeTwoDigits(seconds / 3600 % 24, to: place + 11)
    ASCII.writeTwoDigits(seconds / 60 % 60, to: place + 14)
    ASCII.writeTwoDigits(seconds % 60, to: place + 17)
    ASCII.writeTwoDigits(rest / 10, to: place + 20)
    place.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: rest % 10), toByteOffset: 22, as: UInt8.self)
  }
}
