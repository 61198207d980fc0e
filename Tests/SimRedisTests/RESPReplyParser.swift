import SimRedis

/// The replies in a stream of bytes.
struct RESPReplyParser {
  private var bytes: Bytes = []
  private var at = 0

  mutating func feed(_ more: some Sequence<UInt8>) { bytes += more }

  /// Returns the next complete reply; `nil` if more bytes are needed.
  mutating func next() -> RESPReply? {
    var place = at
    guard let reply = read(&place) else { return nil }
    at = place
    if at == bytes.count || at > 1 << 16 {
      bytes.removeFirst(at)
      at = 0
    }
    return reply
  }

  private func read(_ place: inout Int) -> RESPReply? {
    guard place < bytes.count, let end = bytes[place...].firstIndex(of: 0x0D), end + 1 < bytes.count else {
      return nil
    }
    let line = String(decoding: bytes[(place + 1)..<end], as: UTF8.self)
    let mark = bytes[place]
    place = end + 2
    switch mark {
    case UInt8(ascii: "+"): return .status(line)
    case UInt8(ascii: "-"): return .error(line)
    case UInt8(ascii: ":"): return Int64(line).map { .integer($0) }
    case UInt8(ascii: "$"): return bulk(Int(line) ?? -1, &place)
    default: return array(Int(line) ?? -1, &place)
    }
  }

  private func bulk(_ count: Int, _ place: inout Int) -> RESPReply? {
    guard count >= 0 else { return .null }
    guard place + count + 2 <= bytes.count else { return nil }
    defer { place += count + 2 }
    return .bulk(Bytes(bytes[place..<(place + count)]))
  }

  private func array(_ count: Int, _ place: inout Int) -> RESPReply? {
    guard count >= 0 else { return .nullArray }
    var members: [RESPReply] = []
    for _ in 0..<count {
      guard let member = read(&place) else { return nil }
      members.append(member)
    }
    return .array(members)
  }
}

extension [Bytes] {
  /// The words as a command on the wire.
  var encoded: Bytes {
    var bytes = Bytes("*\(count)\r\n".utf8)
    for word in self {
      bytes += "$\(word.count)\r\n".utf8
      bytes += word
      bytes += [0x0D, 0x0A]
    }
    return bytes
  }
}
