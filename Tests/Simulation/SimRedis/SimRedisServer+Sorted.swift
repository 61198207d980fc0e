/// The commands on sorted sets, in the forms that Semel sends.
extension SimRedisServer {
  private static let notFloat = RESPReply.error("ERR value is not a valid float")
  private static let noRange = RESPReply.error("ERR min or max is not a float")

  private enum Members {
    case members([Keyspace.Scored])
    case other
  }

  private func members(_ call: SimCall) -> Members {
    switch entry(call.words[1], call)?.value {
    case nil: .members([])
    case .sorted(let members): .members(members)
    case .text, .hash: .other
    }
  }

  func sortedAdd(_ call: SimCall) -> RESPReply {
    guard call.words.count.isMultiple(of: 2) else { return Self.syntax }
    let places = Array(stride(from: 2, to: call.words.count, by: 2))
    let scores = places.map { Self.score(call.words[$0]) }
    guard !scores.contains(where: { $0 == nil }) else { return Self.notFloat }
    guard case .members(let members) = members(call) else { return Self.wrongType }
    let known = Set(members.map(\.member))
    let made = Set(places.map { call.words[$0 + 1] }).subtracting(known).count
    change(.setScores(call.words[1], call.words[2...]), in: call.client.database)
    return .integer(Int64(made))
  }

  func sortedRemove(_ call: SimCall) -> RESPReply {
    guard case .members(let members) = members(call) else { return Self.wrongType }
    let gone = Set(call.words[2...]).intersection(members.map(\.member))
    guard !gone.isEmpty else { return .integer(0) }
    change(.removeMembers(call.words[1], call.words[2...]), in: call.client.database)
    return .integer(Int64(gone.count))
  }

  func sortedCount(_ call: SimCall) -> RESPReply {
    guard let range = ScoreRange(call.words[2], call.words[3]) else { return Self.noRange }
    guard case .members(let members) = members(call) else { return Self.wrongType }
    return .integer(Int64(members.count { range.contains($0.score) }))
  }

  func sortedRange(_ call: SimCall) -> RESPReply {
    var (offset, count, hasScores): (Int64, Int64, Bool) = (0, -1, false)
    var index = 4
    while index < call.words.count {
      switch call.text(index).uppercased() {
      case "WITHSCORES": hasScores = true
      case "LIMIT" where index + 2 < call.words.count:
        guard let first = strictInteger(call.words[index + 1]),
          let limit = strictInteger(call.words[index + 2])
        else { return Self.notInteger }
        (offset, count) = (first, limit)
        index += 2
      default: return Self.syntax
      }
      index += 1
    }
    guard let range = ScoreRange(call.words[2], call.words[3]) else { return Self.noRange }
    guard case .members(let members) = members(call) else { return Self.wrongType }
    guard offset >= 0 else { return .array([]) }
    let rest = members.filter { range.contains($0.score) }.dropFirst(Int(offset))
    let found = count < 0 ? rest : rest.prefix(Int(count))
    return .array(found.flatMap { hasScores ? [.bulk($0.member), .text($0.text)] : [.bulk($0.member)] })
  }

  fileprivate static func score(_ text: some BidirectionalCollection<UInt8>) -> Double? {
    switch String(decoding: text, as: UTF8.self).lowercased() {
    case "inf", "+inf": .infinity
    case "-inf": -.infinity
    default: strictInteger(text).map { Double($0) }
    }
  }
}

/// A range of scores; an end after `(` is not in it.
private struct ScoreRange {
  private let low: (score: Double, isOpen: Bool)
  private let high: (score: Double, isOpen: Bool)

  /// Reads the ends; `nil` if one of them is no score.
  init?(_ low: Bytes, _ high: Bytes) {
    guard let low = Self.end(low), let high = Self.end(high) else { return nil }
    (self.low, self.high) = (low, high)
  }

  private static func end(_ text: Bytes) -> (score: Double, isOpen: Bool)? {
    let isOpen = text.first == UInt8(ascii: "(")
    return SimRedisServer.score(isOpen ? text[1...] : text[...]).map { ($0, isOpen) }
  }

  func contains(_ score: Double) -> Bool {
    (low.isOpen ? score > low.score : score >= low.score)
      && (high.isOpen ? score < high.score : score <= high.score)
  }
}

extension Keyspace.Value {
  /// Sets scores of a sorted set, each of which is followed by its member.
  mutating func setScores(_ words: ArraySlice<Bytes>) {
    guard case .sorted(var members) = self else { return }
    for place in stride(from: words.startIndex, to: words.endIndex, by: 2) {
      let new = Keyspace.Scored(score: SimRedisServer.score(words[place]) ?? 0, member: words[place + 1])
      members.removeAll { $0.member == new.member }
      members.insert(new, at: members.firstIndex { new < $0 } ?? members.count)
    }
    self = .sorted(members)
  }

  mutating func removeMembers(_ gone: ArraySlice<Bytes>) {
    guard case .sorted(var members) = self else { return }
    members.removeAll { gone.contains($0.member) }
    self = .sorted(members)
  }
}
