import Idempotency
import Wire

extension Target {
  private static let parts: [CallerPart] = [.header("authorization"), .cookie("session"), .address]

  /// A request of somebody: what is written of the caller can be read back part by part, so that no two look alike.
  static func callersFault(in bytes: [UInt8]) -> String? {
    guard let sample = Sample(bytes) else { return nil }
    let peer = CallerPeer(address: "192.0.2.1")
    let known = try? CallerPolicy(parts: parts).caller(head: sample.head, peer: peer)
    let allowed = try? CallerPolicy(parts: parts, anonymous: .allow).caller(head: sample.head, peer: peer)
    guard let allowed else { return known == nil ? nil : "a caller is known only where none need be" }
    guard let lengths = lengths(in: allowed.framed), lengths.count == parts.count else {
      return "the parts cannot be told apart: \(allowed.framed)"
    }
    let isWhole = lengths.allSatisfy { $0 ?? 0 > 0 }
    return known == (isWhole ? allowed : nil) ? nil : "another caller where all parts must be there"
  }

  /// The length of each part's value, `nil` for one that is not there; `nil` where it cannot be read to its end.
  private static func lengths(in framed: [UInt8]) -> [Int?]? {
    var rest = framed[...]
    /// Seven bits a byte, the lowest first.
    func length() -> Int? {
      var length = 0
      for shift in stride(from: 0, to: 63, by: 7) {
        guard let byte = rest.popFirst() else { return nil }
        length |= Int(byte & 0x7F) << shift
        if byte < 0x80 { return length }
      }
      return nil
    }
    var lengths: [Int?] = []
    while rest.popFirst() != nil {
      guard let name = length(), name <= rest.count else { return nil }
      rest = rest.dropFirst(name)
      switch rest.popFirst() {
      case 0: lengths.append(nil)
      case 1:
        guard let value = length(), value <= rest.count else { return nil }
        rest = rest.dropFirst(value)
        lengths.append(value)
      default: return nil
      }
    }
    return lengths
  }
}
