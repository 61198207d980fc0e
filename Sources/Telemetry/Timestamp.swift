import Glibc
import Platform

/// The format of times in log entries and documents.
public enum Timestamp {
  /// Returns the time as RFC 3339 in UTC with milliseconds: `2026-01-31T08:15:30.042Z`.
  public static func now() -> String { text(milliseconds: WallClock.milliseconds()) }

  /// Returns a time, given in milliseconds since 1970, as RFC 3339 in UTC.
  public static func text(milliseconds: Int64) -> String {
    var seconds = time_t(milliseconds / 1000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let padded = { (value: Int32, width: Int) in
      let digits = String(value)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    let date = "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
    let time = "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))"
    return "\(date)T\(time).\(padded(Int32(milliseconds % 1000), 3))Z"
  }
}
