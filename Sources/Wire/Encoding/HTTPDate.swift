import NIOCore

/// Dates of HTTP (RFC 9110, section 5.6.7), in UTC and whole seconds: written as `Sun, 06 Nov 1994 08:49:37 GMT`, and
/// read also in the two obsolete formats, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
public enum HTTPDate {
  /// The length of every date, in bytes.
  public static let length = 29

  private static let template: StaticString = "Thu, 01 Jan 1970 00:00:00 GMT"
  private static let weekdays: StaticString = "ThuFriSatSunMonTueWed"
  private static let months: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"
  /// The Unix times that a year of four digits can express: from 0000-01-01 to the last second of 9999.
  private static let range = -62_167_219_200...253_402_300_799

  /// The Unix time of a date, in seconds; `nil` for anything else, such as a wrong weekday.
  ///
  /// - Parameter now: The present Unix time in seconds, which is read only for a year of two digits.
  public static func parse(_ bytes: UnsafeRawBufferPointer, now: () -> Int) -> Int? {
    if bytes.count == length { return parse(bytes) }
    guard let text = fromObsolete(String(decoding: bytes, as: UTF8.self), now: now) else { return nil }
    return Array(text.utf8).withUnsafeBytes { parse($0) }
  }

  /// A date in an obsolete format as one in the present format; `nil` for another text. The caller checks the parts.
  private static func fromObsolete(_ text: String, now: () -> Int) -> String? {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    // The day of `asctime` has a space in place of a leading zero.
    if words.count == 5 || words.count == 6 && words[2].isEmpty {
      let day = words.count == 5 ? "\(words[2])" : "0\(words[3])"
      return "\(words[0]), \(day) \(words[1]) \(words[words.count - 1]) \(words[words.count - 2]) GMT"
    }
    guard words.count == 4, words[3] == "GMT", weekdayNames.contains(words[0]) else { return nil }
    let parts = words[1].split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2].utf8.count == 2, let year = Int(parts[2]), year >= 0 else { return nil }
    // A date is at most fifty years ahead.
    let latest = CivilDate(days: now() / 86_400).year + 50
    let fullYear = latest - (latest - year) % 100
    return "\(words[0].prefix(3)), \(parts[0]) \(parts[1]) \(fullYear) \(words[2]) GMT"
  }

  private static let weekdayNames: Set<Substring> = [
    "Monday,", "Tuesday,", "Wednesday,", "Thursday,", "Friday,", "Saturday,", "Sunday,",
  ]

  private static func parse(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard bytes.count == length, let year = number(bytes, 12..<16), let day = number(bytes, 5..<7),
      let hour = number(bytes, 17..<19), let minute = number(bytes, 20..<22),
      let second = number(bytes, 23..<25),
      let month = (0..<12).first(where: { isMonth(bytes, $0) })
    else { return nil }
    let days = CivilDate(year: year, month: month + 1, day: day).days
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    // A valid date is one that would be written in the same way, which excludes 31 June and 25 o'clock.
    return withUnsafeTemporaryAllocation(byteCount: length, alignment: 1) { space in
      guard let start = space.baseAddress else { return nil }
      write(seconds, to: start)
      return space.elementsEqual(bytes) ? seconds : nil
    }
  }

  /// Writes the date of a Unix time in seconds, clamped to the years 0 to 9999.
  fileprivate static func write(_ seconds: Int, to start: UnsafeMutableRawPointer) {
    let seconds = min(max(seconds, range.lowerBound), range.upperBound)
    let day = (seconds - (seconds < 0 ? 86_399 : 0)) / 86_400
    let ofDay = seconds - day * 86_400
    let date = CivilDate(days: day)
    start.copyMemory(from: template.utf8Start, byteCount: length)
    // Day 0 was a Thursday.
    start.copyMemory(from: weekdays.utf8Start + ((day % 7) + 7) % 7 * 3, byteCount: 3)
    ASCII.writeTwoDigits(date.day, to: start + 5)
    (start + 8).copyMemory(from: months.utf8Start + (date.month - 1) * 3, byteCount: 3)
    ASCII.writeTwoDigits(date.year / 100, to: start + 12)
    ASCII.writeTwoDigits(date.year % 100, to: start + 14)
    ASCII.writeTwoDigits(ofDay / 3600, to: start + 17)
    ASCII.writeTwoDigits(ofDay / 60 % 60, to: start + 20)
    ASCII.writeTwoDigits(ofDay % 60, to: start + 23)
  }

  private static func number(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
    ASCII.decimal(UnsafeRawBufferPointer(rebasing: bytes[range]))
  }

  private static func isMonth(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Bool {
    (0..<3).allSatisfy { bytes[8 + $0] == months.utf8Start[index * 3 + $0] }
  }
}

extension ByteBuffer {
  /// Writes a field line whose value is the date of a Unix time in seconds.
  ///
  /// - Parameter name: The name with its colon and space.
  public mutating func writeFieldLine(_ name: StaticString, date seconds: Int) {
    writeFieldLine(name, longest: HTTPDate.length) { place in
      HTTPDate.write(seconds, to: place)
      return HTTPDate.length
    }
  }
}

/// A day of the Gregorian calendar, which converts to and from days since 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last day of its year; 400 years have 146097 days.
public struct CivilDate: Equatable {
  public let year: Int
  /// The month, from 1 to 12.
  public let month: Int
  /// The day of the month, from 1 to 31.
  public let day: Int

  init(year: Int, month: Int, day: Int) {
    self.year = year
    self.month = month
    self.day = day
  }

  /// The number of days between 0000-03-01 and 1970-01-01.
  private static let epoch = 719_468

  /// The day that is a number of days after 1970-01-01, or before it.
  public init(days: Int) {
    let shifted = days + Self.epoch
    let era = (shifted - (shifted < 0 ? 146_096 : 0)) / 146_097
    let ofEra = shifted - era * 146_097
    let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
    let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let march = (5 * ofYear + 2) / 153
    day = ofYear - (153 * march + 2) / 5 + 1
    month = march < 10 ? march + 3 : march - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  var days: Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted - (shifted < 0 ? 399 : 0)) / 400
    let yearOfEra = shifted - era * 400
    let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + ofYear - Self.epoch
  }
}
