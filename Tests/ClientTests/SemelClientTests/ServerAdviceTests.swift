import Foundation
import HTTPTypes
@testable import SemelClient
import Testing

struct ServerAdviceTests {
  private let now = Date(timeIntervalSince1970: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

  @Test(arguments: [
    ("0", Duration.zero), ("7", .seconds(7)), ("99999999999999999999", .seconds(1_000_000_000)),
    ("Sun, 06 Nov 1994 08:49:47 GMT", .seconds(10)), ("Sun, 06 Nov 1994 08:49:27 GMT", .zero),
    ("Thu, 29 Feb 1996 00:00:00 GMT", .seconds(41_440_223)),
  ])
  func `Retry-After is a number of seconds or a date`(text: String, wait: Duration) {
    #expect(ServerAdvice.retryAfter([.retryAfter: text], now: now) == wait)
  }

  @Test(arguments: [
    "", "soon", "-1", "1.5", "Sun, 06 Nov 1994", "Sun, 99 Nov 1994 08:49:37 GMT", "1 2 3 4 5 6",
  ])
  func `a Retry-After that is neither counts as none`(text: String) {
    #expect(ServerAdvice.retryAfter([.retryAfter: text], now: now) == nil)
  }

  @Test func `a Retry-After that stands twice counts as none`() {
    var fields = HTTPFields()
    fields.append(HTTPField(name: .retryAfter, value: "1"))
    fields.append(HTTPField(name: .retryAfter, value: "2"))
    #expect(ServerAdvice.retryAfter(fields, now: now) == nil)
  }

  @Test func `dates agree with Foundation's calendar over four centuries`() throws {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    for day in stride(from: -135_000, to: 135_000, by: 97) {
      let date = Date(timeIntervalSince1970: Double(day) * 86_400 + 3723)
      let parts = calendar.dateComponents([.year, .month, .day], from: date)
      let (year, month, dayOfMonth) = (parts.year ?? 0, parts.month ?? 0, parts.day ?? 0)
      let text = "Sun, \(dayOfMonth < 10 ? "0" : "")\(dayOfMonth) \(months[month - 1]) \(year) 01:02:03 GMT"
      #expect(ServerAdvice.date(text) == date, "\(text)")
    }
  }
}
