import Idempotency
import NIOCore

/// The bytes that nodes have lately sent to Redis, in which a claim is found by its owner: also those that never arrived.
final class SentClaims {
  private struct Piece {
    let at: Moment
    let node: Int
    let connection: Int
    let bytes: ByteBuffer
  }

  /// The time for which a claim is of interest, longer than two calls.
  private static let span = Span(seconds: 5)

  private let schedule: Schedule
  private var pieces: [Piece] = []
  private var connections = 0

  init(on schedule: Schedule) { self.schedule = schedule }

  /// Keeps what a node sends on a connection.
  func follow(_ wire: Wire, from node: End, of number: Int) {
    connections += 1
    let connection = connections
    wire.onSend = { [unowned self, unowned node] end, bytes in
      guard end === node else { return }
      add(Piece(at: schedule.now, node: number, connection: connection, bytes: bytes))
    }
  }

  private func add(_ piece: Piece) {
    pieces.append(piece)
    guard pieces.count > 4096, pieces[2048].at + Self.span < piece.at else { return }
    pieces.removeFirst(2048)
  }

  /// The node that has sent the claim of an owner, and whether one of its copies may take a record over; `nil` if there
  /// is none that is whole.
  func claim(of owner: OwnerToken) -> (node: Int, mayTakeOver: Bool)? {
    let mark = Self.mark(of: owner)
    var (node, mayTakeOver): (Int?, Bool) = (nil, false)
    for connection in Set(pieces.map(\.connection)).sorted() {
      let own = pieces.filter { $0.connection == connection }
      let bytes = own.flatMap { $0.bytes.readableBytesView }
      var at = 0
      while let place = bytes.first(mark, from: at) {
        at = place + mark.count
        // Behind the owner: deadline, spans, fingerprint, time to live, and `settle`.
        guard let settle = Self.words(5, of: bytes, from: at).last else { return nil }
        node = own[0].node
        mayTakeOver = mayTakeOver || !settle.elementsEqual("-1".utf8)
      }
    }
    return node.map { ($0, mayTakeOver) }
  }

  /// When a node has last sent the claim of an owner; `nil` if that is not known.
  func lastSent(by owner: OwnerToken) -> Moment? {
    let mark = Self.mark(of: owner)
    return pieces.last { piece in
      piece.bytes.withUnsafeReadableBytes { $0.first(mark, from: 0) != nil }
    }?.at
  }

  /// The text that a claim alone has in it.
  private static func mark(of owner: OwnerToken) -> [UInt8] { Array("$32\r\n\(owner.digits)\r\n".utf8) }

  /// The next arguments of a command; none if they are not whole.
  private static func words(_ count: Int, of bytes: [UInt8], from start: Int) -> [ArraySlice<UInt8>] {
    var (at, words): (Int, [ArraySlice<UInt8>]) = (start, [])
    for _ in 0..<count {
      guard at < bytes.count, bytes[at] == UInt8(ascii: "$"), let end = bytes.first([13, 10], from: at),
        let length = Int(String(decoding: bytes[(at + 1)..<end], as: UTF8.self)),
        end + 4 + length <= bytes.count
      else { return [] }
      words.append(bytes[(end + 2)..<(end + 2 + length)])
      at = end + 4 + length
    }
    return words
  }
}

extension OwnerToken {
  /// Its 32 digits, as in Redis.
  fileprivate var digits: String {
    [high, low].map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}
