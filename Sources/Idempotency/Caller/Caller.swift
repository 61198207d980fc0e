/// Who asks: the parts that a route names, written so that no two callers look alike.
public struct Caller: Hashable, Sendable {
  /// For each part what it is, its name, whether it is there, and its value; every text with its length
  /// before it.
  public let framed: [UInt8]

  /// A keyed digest of it, which a log may hold.
  public func digestText(by digests: LogDigests) -> String { digests.text(framed) }
}

extension Caller {
  /// What a part is. Written into every record's id: the numbers never change.
  enum Kind: UInt8 {
    case header = 1
    case cookie = 2
    case address = 3
    case clientCertificate = 5
  }

  /// Writes parts one after the other.
  struct Builder {
    // Most callers are one token of less.
    private var framed: [UInt8] = []

    init() { framed.reserveCapacity(96) }

    var caller: Caller { Caller(framed: framed) }

    mutating func part(_ kind: Kind, name: String, value: UnsafeRawBufferPointer?) {
      framed.append(kind.rawValue)
      length(name.utf8.count)
      framed.append(contentsOf: name.utf8)
      framed.append(value == nil ? 0 : 1)
      guard let value else { return }
      length(value.count)
      framed.append(contentsOf: value)
    }

    /// Seven bits a byte, the lowest first.
    private mutating func length(_ length: Int) {
      var rest = UInt64(length)
      while rest > 0x7F {
        framed.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
      }
      framed.append(UInt8(rest))
    }
  }
}
