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
