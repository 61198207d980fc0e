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
