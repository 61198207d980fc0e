import Idempotency
import NIOCore
import Wire

/// The result of one copy of a script's command.
struct ScriptReply {
  enum Ending {
    /// The script succeeded.
    case done
    /// The script returned the record's state, or the reason for which it did nothing.
    case result(ScriptResult)
    /// Redis returned an error, and then has changed nothing.
    case refused(String)
    /// A node of a cluster has not executed the command, which another node or a later copy may.
    case redirected(ClusterRefusal)
    /// The command was written, and its connection was lost before the reply, or the reply cannot be used although it
    /// may have taken effect.
    case lost(String)
    /// The connection was lost before the command was written.
    case unwritten(String)
    /// The command was written, and the call's time-out has passed.
    case timedOut
  }

  var ending: Ending
  /// The store's time from the reply; 0 if there is none.
  var now = StoreInstant(milliseconds: 0)
  /// The time when this copy was written, by this machine's boot-time clock.
  var sentAt = BootInstant(nanoseconds: 0)
  /// The time until which Redis may still execute an earlier copy of a claim, whose reply was lost; `nil` if this is the
  /// only copy.
  var copiedUntil: BootInstant?
  /// The reason for which the reply does not count: too few replicas have the change. `nil` if it counts.
  var shortage: String?
  /// The response that was read from a key of its own.
  var response: Outcome?
}

/// The longer reply of a script. A class, so that passing it copies nothing.
final class ScriptResult: Sendable {
  enum Word: UInt8 {
    case again = 0x61
    /// The response that the record would name is not at the server.
    case bare = 0x62
    /// The owner's record was missing and was made anew.
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
    /// The record's present text, which is parsed with its attribution.
    case view = 0x76
  }

  private static let otherFormat = "the record has another format than this version of Semel reads"

  let word: Word
  let record: RedisRecord?
  /// The reason for which this version cannot read the record; `nil` if it can.
  let unreadable: String?
  /// A part of a listing or of a search.
  let list: RedisList?
  /// The value of a fact, empty if it has none; or the end of the key of a response that is not needed any more.
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
  /// The reason for which there is no reply.
  var lossReason: String {
    switch ending {
    case .lost(let reason), .unwritten(let reason), .refused(let reason): reason
    case .redirected: "another node of the cluster has the key"
    case .timedOut: "Redis did not reply in time"
    case .done, .result: "the reply was for nobody"
    }
  }

  /// The result of a script that Redis has executed; `nil` if it succeeded without one. Any other reply says nothing about
  /// the record, and must not be taken for a success.
  var finalResult: ScriptResult? {
    switch ending {
    case .done: return nil
    case .result(let result): return result
    case .refused, .redirected, .lost, .unwritten, .timedOut:
      invariantBroken("a reply counts as a success that is none")
    }
  }

  /// Whether the script has only read the record that it reports.
  var hasOnlyRead: Bool {
    guard case .result(let result) = ending else { return false }
    return result.word == .standing || result.word == .view
  }

  /// Whether the script has made its change now, not earlier.
  var isFirst: Bool {
    switch ending {
    case .done: true
    case .result(let result): result.word == .created
    case .refused, .redirected, .lost, .unwritten, .timedOut: false
    }
  }

  /// Parses the reply of a script.
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
  /// Returns the record's standing. Throws an error if the record cannot be read.
  ///
  /// - Parameters:
  ///   - now: The store's time of the reply.
  ///   - response: The response from a key of its own.
  func standing(now: StoreInstant, response: Outcome?) throws(StoreError) -> Standing {
    if let unreadable { throw .unreadable(unreadable) }
    return record?.standing(now: now, response: response) ?? .absent
  }
}

extension ScriptReply {
  /// Whether a record was not written because its response, which was written before, is not at the server.
  var lacksResponse: Bool {
    guard case .result(let result) = ending else { return false }
    return result.word == .bare
  }

  /// Whether Redis had no record of a claim that was granted, and made one.
  var isOfLostClaim: Bool {
    guard case .result(let result) = ending else { return false }
    return result.word == .created
  }
}
