package import HTTPTypes

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The fields by which a server advises its clients.
package enum ServerAdvice {
  /// The wait of `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date, which counts from `now`. `nil` where the
  /// field is missing, stands twice, or is neither.
  package static func retryAfter(_ fields: HTTPFields, now: Date) -> Duration? {
    let values = fields[values: .retryAfter]
    guard values.count == 1, let text = values.first else { return nil }
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      return .seconds(min(Int64(text) ?? .max, 1_000_000_000))
    }
    guard let date = date(text) else { return nil }
    return .milliseconds(Int64(max(0, min(date.timeIntervalSince(now), 1e9)) * 1000))
  }

  /// The advice of `X-Should-Retry`, or of Stripe's field of the same meaning.
  package static func shouldRetry(_ fields: HTTPFields) -> Bool? {
    switch fields[.shouldRetry] ?? fields[.stripeShouldRetry] {
    case "true": true
    case "false": false
    default: nil
    }
  }

  /// A date in the form that HTTP prescribes to senders (RFC 9110, section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
  package static func date(_ text: String) -> Date? {
    let parts = text.split(separator: " ")
    guard parts.count == 6, parts[0].hasSuffix(","), parts[5] == "GMT",
      let day = Int(parts[1]), (1...31).contains(day),
      let month = months.firstIndex(of: String(parts[2])),
      let year = Int(parts[3]), (1600...9999).contains(year)
    else { return nil }
    let time = parts[4].split(separator: ":").compactMap { Int($0) }
    guard time.count == 3, (0..<24).contains(time[0]), (0..<60).contains(time[1]), (0...60).contains(time[2])
    else { return nil }
    let days = daysSinceEpoch(year: year, month: month + 1, day: day)
    return Date(timeIntervalSince1970: Double(days * 86_400 + time[0] * 3600 + time[1] * 60 + time[2]))
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The days from 1 January 1970 to a date of the Gregorian calendar. Years are counted from March, so that the leap
  /// day is the last one of its year.
  private static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
    let marchYear = month > 2 ? year : year - 1
    let monthsFromMarch = (month + 9) % 12
    let dayOfYear = (153 * monthsFromMarch + 2) / 5 + day - 1
    let leapDays = marchYear / 4 - marchYear / 100 + marchYear / 400
    return marchYear * 365 + leapDays + dayOfYear - 719_468
  }
}
