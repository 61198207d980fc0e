import Idempotency
import NIOCore
import Wire

struct ScriptReply {
  enum Ending {
    case done
    case result(ScriptResult)
    case refused(String)
    /// A node of a cluster has not executed the command.
    case redirected(ClusterRefusal)
    /// The command was written, and its reply was lost or cannot be used, although it may have taken effect.
    case lost(String)
    case unwritten(String)
    case timedOut
  }

  var ending: Ending
  /// The store's time from the reply; 0 without.
  var now = StoreInstant(milliseconds: 0)
  var sentAt = BootInstant(nanoseconds: 0)
  /// The time until which Redis may still execute an earlier copy of a claim, whose reply was lost.
  var copiedUntil: BootInstant?
  /// The reason for which the reply does not count: too few replicas have the change.
  var shortage: String?
  var response: Outcome?
}

/// The longer reply of a script. A class, so that passing it copies nothing.
final class ScriptResult: Sendable {
  enum Word: UInt8 {
    case again = 0x61
    case bare = 0x62
    case created = 0x63
    case erased = 0x65
    case fact = 0x66
    case granted = 0x67
    case hits = 0x68
    case late = 0x6C
    case walked = 0x77
    case mismatch = 0x6D
    case none = 0x6E
    case recipe = 0x72
    case standing = 0x73
    case unreadable = 0x75
    /// The record's text, parsed with its attribution.
    case view = 0x76
  }

  private static let otherFormat = "the record has another format than this version of Semel reads"

  let word: Word
  let record: RedisRecord?
  /// The reason for which this version cannot read the record.
  let unreadable: String?
  let list: RedisList?
  /// The value of a fact, empty if it has none; or the end of the key of a response to delete.
  let text: String?

  init(_ word: Word, _ reply: borrowing HiredisReply) {
    self.word = word
    text =
      word == .fact || word == .erased ? reply.withBytes(at: 2) { String(decoding: $0, as: UTF8.self) } : nil
    guard word != .walked, word != .hits, word != .unreadable, word != .fact, word != .erased else {
      list = word == .walked || word == .hits ? RedisList(reply, hasTexts: word == .walked) : nil
      unreadable = word == .unreadable ? Self.otherFormat : nil
      record = nil
      return
    }
    list = nil
    let record = reply.withBytes(at: 2) { RedisRecord($0, isAttributed: word == .view) }
    self.record = record ?? nil
    unreadable = record.flatMap(Self.fault)
  }

  private static func fault(_ record: RedisRecord?) -> String? {
    guard let record else { return otherFormat }
    return record.isResponseDamaged ? OutcomeCodec.otherFormat : nil
  }
}

extension ScriptReply {
  var lossReason: String {
    switch ending {
    case .lost(let reason), .unwritten(let reason), .refused(let reason): reason
    case .redirected: "another node of the cluster has the key"
    case .timedOut: "Redis did not reply in time"
    case .done, .result: "the reply was for nobody"
    }
  }

  /// The result of a script that Redis has executed; `nil` if it succeeded without one. Any other reply must not be
  /// taken for a success.
  var finalResult: ScriptResult? {
    switch ending {
    case .done: return nil
    case .result(let result): return result
    case .refused, .redirected, .lost, .unwritten, .timedOut:
      invariantBroken("a reply counts as a success that is none")
    }
  }

  /// The longer reply; `nil` for any other ending.
  var result: ScriptResult? { if case .result(let result) = ending { result } else { nil } }

  /// Whether the script has made its change now, not earlier.
  var isFirst: Bool { if case .done = ending { true } else { result?.word == .created } }

  init(_ reply: borrowing HiredisReply) {
    if reply.kind == .integer, let now = StoreInstant(received: reply.integer) {
      self.init(ending: .done, now: now)
    } else if let now = reply.integer(at: 0).flatMap(StoreInstant.init(received:)),
      let word = reply.withBytes(at: 1, { $0.first.flatMap(ScriptResult.Word.init) }) ?? nil
    {
      self.init(ending: .result(ScriptResult(word, reply)), now: now)
    } else if reply.kind == .error {
      self.init(ending: .refused(reply.withBytes { String(decoding: $0, as: UTF8.self) }))
    } else {
      self.init(ending: .refused("ERR a reply that no script of Semel's gives"))
    }
  }
}

extension ScriptResult {
  /// The record's standing, with the response from a key of its own.
  func standing(now: StoreInstant, response: Outcome?) throws(StoreError) -> Standing {
    if let unreadable { throw .unreadable(unreadable) }
    return record?.standing(now: now, response: response) ?? .absent
  }
}

/// The meaning of Redis' errors, and the advice for the operator.
enum RedisRefusal {
  /// Whether Redis does not have the script, in which case it has not run it.
  static func isScriptMissing(_ text: String) -> Bool { text.hasPrefix("NOSCRIPT") }

  static func isPassing(_ text: String) -> Bool { !text.hasPrefix("NOPERM") && !text.hasPrefix("ERR ") }

  /// Whether the server refuses the connection, in the place of the reply to any command.
  static func isOfConnection(_ text: String) -> Bool {
    text.hasPrefix("ERR max number of clients") || text.hasPrefix("DENIED ")
  }

  static func isDemotion(_ text: String) -> Bool { has("READONLY", text) }

  /// Returns the error of a command that Redis refused and that has changed nothing. One that Redis forbids or fails in
  /// may concern a recorded outcome: that opens no route.
  static func error(_ text: String) -> StoreError {
    if has("WRONGTYPE", text) { return .unreadable("the record's key holds something else: \(text)") }
    let hasFailed = text.hasPrefix("ERR ") && obstacle(text) == nil && !isOfConnection(text)
    return hasFailed || has("NOPERM", text) ? .refused(advice(text)) : .unavailable(advice(text))
  }

  /// The reason, with advice, for which a server takes no changes at present, whoever makes them.
  static func obstacle(_ text: String) -> String? {
    ["OOM", "MISCONF", "NOREPLICAS", "READONLY", "MASTERDOWN"].contains { has($0, text) } ? advice(text) : nil
  }

  static func advice(_ text: String) -> String {
    for (code, advice) in advices where has(code, text) { return "\(advice) (\(text))" }
    return "Redis refused the command (\(text))"
  }

  /// Whether the error has this code, which Redis 6.2 puts behind the position in a script.
  private static func has(_ code: String, _ text: String) -> Bool {
    text.hasPrefix(code + " ") || text.hasPrefix("ERR Error running script") && text.contains("-\(code) ")
      || text == code
  }

  private static let advices = [
    (
      "ERR unknown command 'WAITAOF',",
      "this server has no WAITAOF, which Redis has from 7.2 on: take durable: waitaof out of the store's settings"
    ),
    (
      "ERR unknown command `WAITAOF`,",
      "this server has no WAITAOF, which Redis has from 7.2 on: take durable: waitaof out of the store's settings"
    ),
    (
      "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
      "durable: waitaof needs a Redis with a file: set appendonly yes"
    ),
    ("ERR WAIT", "this Redis is a replica, which cannot wait for replicas of its own"),
    (
      "NOAUTH",
      "Redis wants a login: give user and password in the store's url, or username and password_file (for Sentinels, those of store.sentinel)"
    ),
    ("WRONGPASS", "Redis knows no such user and password: correct them in the store's url or password_file"),
    ("ERR AUTH", "Redis has no password, or knows no such user: correct them in the store's url"),
    ("NOPERM", "Redis forbids a command to Semel's user: widen its ACL"),
    (
      "ERR max number of clients reached", "Redis has no connection left: raise its maxclients, or close some"
    ),
    ("DENIED", "Redis is in protected mode, and refuses clients from other machines: give it a password"),
    ("LOADING", "Redis is reading its data from disk: wait until it is ready"),
    ("BUSY", "Redis is held up by somebody's script: end it with SCRIPT KILL"),
    ("MASTERDOWN", "this Redis is a replica that has lost its master: point the store's url at the master"),
    ("READONLY", "this Redis is a read-only replica: point the store's url at the master"),
    ("OOM", "Redis has no memory left: raise its maxmemory, or keep responses for less long"),
    ("MISCONF", "Redis cannot write to its disk and takes no changes: see its log"),
    ("NOREPLICAS", "Redis has too few replicas to take changes: see min-replicas-to-write"),
    ("MOVED", "this Redis is part of a cluster: the store's topology must say so"),
    ("CLUSTERDOWN", "this Redis is part of a cluster that is down"),
  ]
}

/// A reply as a plain value.
indirect enum RedisValue: Equatable, Sendable {
  case null
  case integer(Int64)
  case text(String)
  case error(String)
  case array([RedisValue])

  var text: String? {
    if case .text(let text) = self { text } else { nil }
  }

  var error: String? {
    if case .error(let text) = self { text } else { nil }
  }

  /// Returns the value of a line `NAME:VALUE` of a reply to `INFO`.
  func info(_ name: String) -> Substring? {
    guard let text else { return nil }
    let bytes = text.utf8
    var start = bytes.startIndex
    while start < bytes.endIndex {
      let end = bytes[start...].firstIndex { $0 == 0x0D || $0 == 0x0A } ?? bytes.endIndex
      let line = bytes[start..<end]
      if line.starts(with: name.utf8) {
        let value = line.dropFirst(name.utf8.count)
        if value.first == UInt8(ascii: ":") { return text[value.index(after: value.startIndex)..<end] }
      }
      start = end < bytes.endIndex ? bytes.index(after: end) : end
    }
    return nil
  }
}
