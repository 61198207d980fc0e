import Wire
import WireOracle

extension Target {
  /// A backend's stream of HTTP/1.1: it means the same wherever it is cut, whatever was asked; and what the tolerant
  /// reading puts right means the same to all others.
  static func responsesFault(in bytes: [UInt8]) -> String? {
    for method in [MessageHead.Method.get, .head, .connect] {
      let (whole, end) = Decoded.response(bytes, to: method)
      let (trickled, trickledEnd) = Decoded.response(bytes, to: method, cuts: Array(0..<bytes.count))
      guard whole == trickled, end == trickledEnd else {
        return "cutting changes the meaning: \(whole), \(end) / \(trickled), \(trickledEnd)"
      }
      if case .broken(let fault) = ResponseReading.check(bytes, to: method) { return fault }
    }
    return nil
  }
}
