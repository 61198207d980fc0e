import NIOCore
import Wire

/// The methods of a route's requests.
public struct MethodSet: Hashable, Sendable {
  /// One bit for each method known to `MessageHead`.
  private let known: UInt16
  /// The other methods in the set, by name.
  private let named: [[UInt8]]
  /// Whether the set contains all other methods, without naming them.
  private let holdsUnnamed: Bool

  /// Creates the set of the listed methods.
  public init(listed names: [String]) {
    var known: UInt16 = 0
    var named: [[UInt8]] = []
    for name in names.map({ Array($0.utf8) }) {
      let method = name.withUnsafeBytes { MessageHead.Method($0) }
      if method == .other { named.append(name) } else { known |= Self.bit(method) }
    }
    (self.known, self.named, holdsUnnamed) = (known, named, false)
  }

  private init(without excluded: UInt16) {
    (known, named, holdsUnnamed) = (~excluded, [], true)
  }

  /// Every method.
  public static let all = MethodSet(without: 0)

  /// All methods except the safe ones: GET, HEAD, OPTIONS and TRACE.
  public static let unsafe = MethodSet(without: bit(.get) | bit(.head) | bit(.options) | bit(.trace))

  /// Whether the set contains a method, in its spelling on the wire.
  public func contains(_ method: UnsafeRawBufferPointer) -> Bool {
    let value = MessageHead.Method(method)
    guard value == .other else { return known & Self.bit(value) != 0 }
    return holdsUnnamed || named.contains { $0.elementsEqual(method) }
  }

  /// Whether the set contains all methods of another set.
  public func isSuperset(of other: MethodSet) -> Bool {
    guard other.known & ~known == 0 else { return false }
    if holdsUnnamed { return true }
    return !other.holdsUnnamed && other.named.allSatisfy(named.contains)
  }

  /// Whether the set contains any method but this one.
  func hasOthers(than method: ByteBuffer) -> Bool {
    method.withUnsafeReadableBytes { method in
      let own = MessageHead.Method(method)
      let others = own == .other ? known : known & ~Self.bit(own)
      return others != 0 || holdsUnnamed || named.contains { !$0.elementsEqual(method) }
    }
  }

  private static func bit(_ method: MessageHead.Method) -> UInt16 { 1 << UInt16(method.rawValue) }
}
