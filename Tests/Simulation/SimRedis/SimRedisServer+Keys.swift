/// The commands on keys and texts.
extension SimRedisServer {
  /// The entry of a key, which is removed if it has expired and this is a master.
  ///
  /// - Parameter isWalk: Whether a walk has met the key.
  func entry(_ key: Bytes, _ call: SimCall, isWalk: Bool = false) -> Keyspace.Entry? {
    let database = call.client.database
    guard let entry = databases[database][key] else { return nil }
    guard Keyspace.isExpired(entry, at: call.time) else { return entry }
    // Before Redis 7, a script at a replica still reads what its master has not removed.
    guard isMaster else { return version == .redis6 && script != nil && !isWalk ? entry : nil }
    change(.delete(key), in: database)
    return nil
  }

  func get(_ call: SimCall) -> RESPReply {
    switch entry(call.words[1], call)?.value {
    case nil: .null
    case .text(let text): .bulk(text)
    case .hash, .sorted: Self.wrongType
    }
  }

  func length(_ call: SimCall) -> RESPReply {
    switch entry(call.words[1], call)?.value {
    case nil: .integer(0)
    case .text(let text): .integer(Int64(text.count))
    case .hash, .sorted: Self.wrongType
    }
  }

  func range(_ call: SimCall) -> RESPReply {
    guard let start = strictInteger(call.words[2]), let end = strictInteger(call.words[3]) else {
      return Self.notInteger
    }
    switch entry(call.words[1], call)?.value {
    case nil: return .bulk([])
    case .hash, .sorted: return Self.wrongType
    case .text(let text):
      let count = Int64(text.count)
      if start < 0, end < 0, start > end { return .bulk([]) }
      let first = max(start < 0 ? count &+ start : start, 0)
      let last = min(max(end < 0 ? count &+ end : end, 0), count - 1)
      return .bulk(first > last || text.isEmpty ? [] : Bytes(text[Int(first)...Int(last)]))
    }
  }

  func delete(_ call: SimCall) -> RESPReply {
    var count: Int64 = 0
    for key in call.words.dropFirst() where entry(key, call) != nil {
      change(.delete(key), in: call.client.database)
      count += 1
    }
    return .integer(count)
  }

  func expire(_ call: SimCall) -> RESPReply {
    guard call.words.count == 3 else {
      return .error("ERR Unsupported option \(call.text(call.words.count - 1))")
    }
    guard let span = strictInteger(call.words[2]) else { return Self.notInteger }
    guard span <= Int64.max - call.time else { return version.invalidExpire("pexpire") }
    let key = call.words[1]
    guard entry(key, call) != nil else { return .integer(0) }
    let end = call.time + span
    change(end <= call.time ? .delete(key) : .expire(key, at: end), in: call.client.database)
    return .integer(1)
  }

  /// The number of keys, of which some may have expired.
  func size(_ call: SimCall) -> RESPReply { .integer(Int64(databases[call.client.database].count)) }

  func scan(_ call: SimCall) -> RESPReply {
    guard let cursor = cursor(call.words[1]) else { return .error("ERR invalid cursor") }
    var (count, pattern): (Int64, GlobPattern?) = (10, nil)
    var index = 2
    while index < call.words.count {
      guard index + 1 < call.words.count else { return Self.syntax }
      switch call.text(index).uppercased() {
      case "COUNT":
        guard let number = strictInteger(call.words[index + 1]) else { return Self.notInteger }
        guard number > 0 else { return Self.syntax }
        count = number
      case "MATCH": pattern = GlobPattern(pattern: call.words[index + 1])
      default: return Self.syntax
      }
      index += 2
    }
    let step = databases[call.client.database].scan(from: cursor, count: Int(count))
    let keys = step.keys.filter { pattern?.matches($0) ?? true }.filter {
      entry($0, call, isWalk: true) != nil
    }
    return .array([.text(String(step.next)), .array(keys.map { .bulk($0) })])
  }

  private func cursor(_ text: Bytes) -> UInt64? {
    // A negative number is one from above, before Valkey.
    if text.first == 0x2D, version != .valkey9 {
      return UInt64(String(decoding: text.dropFirst(), as: UTF8.self)).map { 0 &- $0 }
    }
    guard text.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    return text.isEmpty ? 0 : UInt64(String(decoding: text, as: UTF8.self))
  }
}

/// `SET`.
extension SimRedisServer {
  private struct SetOptions {
    var onlyIfMissing = false
    var onlyIfPresent = false
    var returnsEarlier = false
    var keepsExpiry = false
    var span: Bytes?

    /// Reads the options; `nil` if they do not go together.
    init?(_ words: ArraySlice<Bytes>, version: SimRedisVersion) {
      var rest = words
      while let word = rest.popFirst() {
        switch String(decoding: word, as: UTF8.self).uppercased() {
        case "NX" where !onlyIfPresent && !(version == .redis6 && returnsEarlier): onlyIfMissing = true
        case "XX" where !onlyIfMissing: onlyIfPresent = true
        case "GET" where !(version == .redis6 && onlyIfMissing): returnsEarlier = true
        case "KEEPTTL" where span == nil: keepsExpiry = true
        case "PX" where !keepsExpiry && !rest.isEmpty: span = rest.removeFirst()
        default: return nil
        }
      }
    }
  }

  func set(_ call: SimCall) -> RESPReply {
    guard let options = SetOptions(call.words[3...], version: version) else { return Self.syntax }
    var end: Int64?
    if let text = options.span {
      guard let span = strictInteger(text) else { return Self.notInteger }
      guard span > 0, span <= Int64.max - call.time else { return version.invalidExpire("set") }
      end = call.time + span
    }
    let key = call.words[1]
    let earlier = entry(key, call)
    let isAllowed = options.onlyIfMissing ? earlier == nil : !options.onlyIfPresent || earlier != nil
    // Before Redis 7, a value that stays is not returned.
    if !isAllowed, version == .redis6 || !options.returnsEarlier { return .null }
    var reply = RESPReply.ok
    if options.returnsEarlier {
      switch earlier?.value {
      case nil: reply = .null
      case .text(let text): reply = .bulk(text)
      case .hash, .sorted: return Self.wrongType
      }
    }
    guard isAllowed else { return reply }
    if options.keepsExpiry { end = earlier?.expiresAt }
    change(.set(key, Keyspace.Entry(value: .text(call.words[2]), expiresAt: end)), in: call.client.database)
    return reply
  }
}

/// The commands on hashes.
extension SimRedisServer {
  private enum Fields {
    case fields([(name: Bytes, value: Bytes)])
    case other
  }

  private func fields(_ call: SimCall) -> Fields {
    switch entry(call.words[1], call)?.value {
    case nil: .fields([])
    case .hash(let fields): .fields(fields)
    case .text, .sorted: .other
    }
  }

  func hashGet(_ call: SimCall) -> RESPReply {
    guard case .fields(let fields) = fields(call) else { return Self.wrongType }
    return fields.first { $0.name == call.words[2] }.map { .bulk($0.value) } ?? .null
  }

  func hashGetAll(_ call: SimCall) -> RESPReply {
    guard case .fields(let fields) = fields(call) else { return Self.wrongType }
    return .array(fields.flatMap { [.bulk($0.name), .bulk($0.value)] })
  }

  func hashSet(_ call: SimCall) -> RESPReply {
    guard call.words.count.isMultiple(of: 2) else { return SimRedisVersion.wrongArity("hset") }
    guard case .fields(let fields) = fields(call) else { return Self.wrongType }
    var names = Set(fields.map(\.name))
    var made: Int64 = 0
    for index in stride(from: 2, to: call.words.count, by: 2)
    where names.insert(call.words[index]).inserted { made += 1 }
    setFields(call)
    return .integer(made)
  }

  func hashSetNew(_ call: SimCall) -> RESPReply {
    guard case .fields(let fields) = fields(call) else { return Self.wrongType }
    guard !fields.contains(where: { $0.name == call.words[2] }) else { return .integer(0) }
    setFields(call)
    return .integer(1)
  }

  private func setFields(_ call: SimCall) {
    change(.setFields(call.words[1], call.words[2...]), in: call.client.database)
  }
}
