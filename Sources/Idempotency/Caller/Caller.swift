/// The caller of a request: the values of the parts that its route names, encoded so that no two callers are equal.
public struct Caller: Hashable, Sendable {
  /// The encoded parts. Each consists of its kind, its name, whether it is present, and its value; every text follows
  /// its length.
  public let framed: [UInt8]

  /// Hashes all bytes at once. The standard library's hash of an array takes ten times as long, one by one.
  public func hash(into hasher: inout Hasher) { framed.withUnsafeBytes { hasher.combine(bytes: $0) } }

  /// A keyed digest of the caller, for logs.
  public func digestText(by digests: LogDigests) -> String { digests.text(framed) }
}

extension Caller {
  /// The kind of a part. The numbers enter every record's id and must never change.
  enum Kind: UInt8 {
    case header = 1
    case cookie = 2
    case address = 3
    case clientCertificate = 5
    case query = 6
    case json = 7
    case jwt = 8
    case basicUser = 9
    case signingKey = 10
  }

  /// Encodes parts one after the other.
  struct Builder {
    // Most callers are one token and fit into the reserved capacity.
    private var framed: [UInt8] = []

    init() { framed.reserveCapacity(96) }

    var caller: Caller { Caller(framed: framed) }

    mutating func part(_ kind: Kind, name: String, value: UnsafeRawBufferPointer?) {
      framed.append(kind.rawValue)
      framed.appendLength(name.utf8.count)
      framed.append(contentsOf: name.utf8)
      framed.append(value == nil ? 0 : 1)
      guard let value else { return }
      framed.appendLength(value.count)
      framed.append(contentsOf: value)
    }
  }
}

extension [UInt8] {
  /// Appends a length in seven bits per byte, the lowest first.
  mutating func appendLength(_ length: Int) {
    var rest = UInt64(length)
    while rest > 0x7F {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(rest))
  }
}
