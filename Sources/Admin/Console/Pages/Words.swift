import Idempotency
import Telemetry

enum Words {
  static func span(_ span: Milliseconds) -> String { self.span(seconds: span.inSeconds) }

  static func span(seconds: Double) -> String {
    switch seconds {
    case ..<0.001: "\(Int((seconds * 1_000_000).rounded())) µs"
    case ..<1: "\(Int((seconds * 1000).rounded())) ms"
    case ..<120: "\(Int(seconds)) s"
    case ..<7200: "\(Int(seconds / 60)) min"
    case ..<172_800: "\(Int(seconds / 3600)) h"
    default: "\(Int(seconds / 86_400)) d"
    }
  }

  /// A whole number with spaces between its thousands.
  static func number(_ count: Int) -> String {
    let digits = Array("\(abs(count))")
    let parts = digits.indices.map { index in
      let rest = digits.count - index
      return "\(digits[index])" + (rest > 1 && rest % 3 == 1 ? "\u{202F}" : "")
    }
    return (count < 0 ? "−" : "") + parts.joined()
  }

  static func count(_ count: Int, _ one: String, _ many: String) -> String {
    "\(number(count)) \(count == 1 ? one : many)"
  }

  static func short(_ id: String) -> String { id.count > 12 ? "\(id.prefix(10))…" : id }

  static func state(_ state: String) -> String { state.replacing("_", with: " ") }

  static func time(_ text: String) -> String { String(text.dropFirst(11).dropLast()) }

  /// A time as documents have it, to the second and with a space.
  static func date(_ text: String) -> String { String(text.prefix(19)).replacing("T", with: " ") }

  /// A span that a form has: a number of seconds, or one with `s`, `m`, `h` or `d`; `nil` for anything else.
  static func parsed(_ text: String) -> Milliseconds? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    let unit = text.last.flatMap { units[$0] }
    guard let number = Int64(unit == nil ? text : String(text.dropLast())), 0..<100_000_000 ~= number else {
      return nil
    }
    return Milliseconds.seconds(number * (unit ?? 1))
  }
}

extension String {
  /// The text as the value of a query's parameter (RFC 3986, section 2.3).
  var queryValue: String {
    utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
        UInt8(ascii: "~"):
        return String(UnicodeScalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        return "%" + (digits.count < 2 ? "0" : "") + digits
      }
    }.joined()
  }
}

extension RecordDocument {
  var row: View {
    view([
      "id": id, "short_id": Words.short(id), "state": state, "state_name": Words.state(state),
      "route_text": route ?? "–", "cause_text": cause ?? "–", "key_text": keyDigest ?? "–",
      "caller_text": callerDigest ?? "–", "attempt_text": attempt.map { "\($0)" } ?? "–",
      "age": (unknownForSeconds ?? ageSeconds).map(Words.span(seconds:)) ?? "–",
    ])
  }
}

func fact(_ name: String, _ value: String?, code: Bool = false) -> View? {
  value.map { view(["name": name, "value": $0, "code": code]) }
}
