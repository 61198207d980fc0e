import Idempotency

/// The constant parts of commands, built once.
struct RedisKeys {
  /// `$LENGTH CRLF NAMESPACE:{`
  private let record: [UInt8]
  let namespace: String

  init(namespace: String) {
    self.namespace = namespace
    // The braces are the hash tag of a cluster: the response of a record is in the record's slot.
    let length = namespace.utf8.count + 3 + Digest256.textLength
    record = Array("$\(length)\r\n\(namespace):{".utf8)
  }

  var capacity: Int { record.count + Digest256.textLength + 8 }

  func write(_ id: RecordID, to writer: inout RedisCommandWriter) {
    writer.bytes(record)
    writer.digest(id.digest)
    writer.literal("}\r\n")
  }

  /// Returns the key of a response, which ends in `r:OWNER`, or in `r` if an earlier version has written it.
  func response(_ id: RecordID, _ place: String) -> String { "\(channel(id)):\(place)" }

  func channel(_ id: RecordID) -> String { "\(namespace):{\(id.text)}" }

  var prefix: String { "\(namespace):{" }

  /// A pattern that the key of every record matches. A namespace has no character that is special there.
  var pattern: String { "\(namespace):{*}" }

  /// The key of the hash with the facts of the namespace.
  var facts: String { "\(namespace):facts" }

  /// The key of facts about one master of a cluster, in the slot of a tag.
  func facts(_ tag: String) -> String { "\(namespace):{\(tag)}:facts" }

  /// A key that no record has. In a cluster it has the slot of the facts.
  func trial(beside factsKey: String) -> String {
    factsKey.lastIndex(of: "}").map { String(factsKey[...$0]) } ?? "\(prefix)trial}"
  }

  var census: String { "\(namespace):census" }
  var censusTurn: String { "\(namespace):census:turn" }

  var open: String { "\(namespace):open" }
  var openKeys: String { "\(namespace):open:keys" }

  var repairWish: String { "\(namespace):open:wish" }

  var invalidations: String { "\(namespace):invalidate" }

  /// The message on that channel by which all owners renew their leases at once.
  static let renewal = "renew"

  /// Returns the beginning of a command, up to the first key.
  static func head(_ script: RedisScript, digest: String) -> [UInt8] {
    head(script, "$7\r\nEVALSHA\r\n$\(digest.utf8.count)\r\n\(digest)\r\n")
  }

  /// Returns the beginning of a command with the whole script, for a Redis that has lost it.
  static func wholeHead(_ script: RedisScript) -> [UInt8] {
    head(script, "$4\r\nEVAL\r\n$\(script.source.utf8.count)\r\n\(script.source)\r\n")
  }

  private static func head(_ script: RedisScript, _ command: String) -> [UInt8] {
    let (keys, others) = script.arguments
    return Array("*\(3 + keys + others)\r\n\(command)$1\r\n\(keys)\r\n".utf8)
  }
}

/// The steps on a record that Redis executes, each atomically and by its own clock.
///
/// A record is one text under `NAMESPACE:{ID}`, whose parts are separated by spaces:
///
///     1 OWNER STATE ATTEMPT FIRST SINCE SPAN UNKNOWN REMEMBER FLAGS FINGERPRINT RECIPE [@ATTRIBUTION]
///     [STATUS [LOCATION | RESPONSE]]
///
/// `1` is the version. `SINCE` and `SPAN` are, in milliseconds: the grant and the lease (`in_flight`), the loss and 0
/// (`unknown`), the release and 0 (`released`), the completion and the retention (`completed`), and the moment and the
/// fence (`forgotten`). `FLAGS` are `o` (only rejected so far), `u` (follows an unknown outcome), `n` with the number of
/// attempts that do not count (on routes with `max_attempts`; an earlier version does not read it), the place of the
/// response (`ResponsePlace`), `x` (location and response are encoded, see `OutcomeCodec`), `f` with the end of the
/// fence of a record that was forgotten before, or `-` for none of these. The key lives at least as long as that fence.
/// A record that its owner has completed is neither `o` nor `u`, its `UNKNOWN` is 0, and so is a `REMEMBER` that is
/// over before the retention. One that an operator has resolved keeps `u` and `UNKNOWN`: amended to a release, it still
/// follows an unknown outcome. The `FIRST` of a completed record is the time from then to the completion; an earlier
/// version wrote the moment, and takes one for the other in what it tells operators.
///
/// The `SINCE` of an open record is not ahead of Redis' clock, unless that was set back, until `takeBack` puts it
/// right. An owner writes its `FIRST` as it was.
///
/// `ATTRIBUTION` is `Attribution.text` of the latest attempt. An earlier version drops it from open records, and
/// refuses a completed one that has it.
///
/// A small response is the end of its record's text. A larger one has a key of its own that names its owner,
/// `NAMESPACE:{ID}:r:OWNER`, written by a plain `SET` before the record's script: each command writes one key, no owner
/// overwrites another's response, and Lua copies no large text. The script looks whether it is there (`checkResponse`).
///
/// A script whose reply is held for replicas, and that finds its change made by an earlier copy, writes the time to
/// live again: Redis (from 7.2 on) and Valkey wait for the last write of the connection, and this copy may be its
/// first. `touch` does the same after a script that has only read a completed record (`ReplicaWaits`).
///
/// Every script but `list` and `search` writes one key, and reads no other but that of its response. It reads first and
/// writes last, so that an error leaves no half-done change. `PUBLISH` may be forbidden, and must not fail what was
/// written.
///
/// The reply is the store's time alone if the script succeeded and has nothing more to report. Otherwise it is an array
/// of the time, a word that is identified by its first letter (`ScriptResult.Word`), and the word's values. Some words
/// are successes with a result: `granted` with the record, unless the claim made it as its first attempt; `created` of
/// a `renew` or `complete` that made a missing record anew; `again` of a repeated `complete` or `forget`; `view`,
/// `erased`, `fact`, `walked` and `hits`. The others say why nothing was done; after `bare` Semel writes the response
/// and the record again.
enum RedisScript: Int, CaseIterable {
  case claim, renew, complete, release, markUnknown, find, forget, resolve, list, search, fact, touch

  var source: String {
    switch self {
    case .claim: Self.time + Self.claimSource
    case .renew: Self.look + Self.renewSource + Self.lost
    case .complete: Self.time + Self.completeSource + Self.lost
    case .release: Self.look + Self.releaseSource + Self.lost
    case .markUnknown: Self.look + Self.markUnknownSource + Self.lost
    case .find: Self.look + Self.findSource + Self.lost
    case .forget: Self.time + Self.forgetSource
    case .resolve: Self.look + Self.resolveSource + Self.lost
    case .list: Self.time + Self.listSource
    case .search: Self.time + Self.searchSource
    case .fact: Self.time + Self.factSource
    case .touch: Self.look + Self.touchSource
    }
  }

  /// Whether the script's effect counts only once enough replicas have it. The loss of a release or of a mark leaves a
  /// record whose lease lapses. A completed record waits whichever script reports it (`ReplicaProof.isNeeded`).
  var awaitsReplicas: Bool {
    switch self {
    case .claim, .renew, .complete, .forget, .resolve: true
    case .release, .markUnknown, .find, .list, .search, .fact, .touch: false
    }
  }

  var arguments: (keys: Int, others: Int) {
    switch self {
    case .claim: (1, 8)
    case .renew: (1, 4)
    case .complete: (1, 6)
    case .release: (1, 2)
    case .markUnknown: (1, 4)
    case .find: (1, 0)
    case .forget: (1, 6)
    case .resolve: (1, 12)
    case .list: (1, 4)
    case .search: (1, 7)
    case .fact: (1, 3)
    case .touch: (1, 0)
    }
  }

  /// Writes the time to live of a record, as it is. The record is the text `r`; its end is computed as by `claim`.
  static let rewriteLife = """
    local state, since, span, unknown, remember, flags =
      string.match(r, '^1 %x+ ([%a_]+) %d+ %d+ (%d+) (%d+) (%d+) (%d+) (%S+)')
    local left = 0
    if state == 'completed' or state == 'forgotten' then
      left = since + math.max(span, remember) - now
    elseif state then
      left = since + span + remember - now
      if state ~= 'released' then left = left + unknown end
    end
    left = math.max(left, (string.match(flags or '', 'f(%d+)') or 0) - now)
    if left > 0 then redis.call('PEXPIRE', KEYS[1], left) end
    """

  /// Sets the time of the open record `r` to now if it lies ahead: Redis' clock was set back, so that the lease or
  /// `settle` cannot be counted from there. A live owner's lease is not shortened. The time to live stays, for the
  /// clock to be set right again. A server that refuses the write does not hold the reply up: the next look repeats it.
  static let takeBack = """
    local head, since, tail = string.match(r, '^(1 %x+ [iu]n[%a_]+ %d+ %d+ )(%d+)( .+)$')
    if head and tonumber(since) > now then
      r = head .. now .. tail
      redis.pcall('SET', KEYS[1], r, 'KEEPTTL')
    end
    """

  /// Ends the script with `bare` if the response that the record is about to name is not at this server. The argument
  /// is the end of its key from `:r:` on, or empty. A server that cannot tell does not hold the record up.
  static func checkResponse(argument: Int) -> String {
    """
    if ARGV[\(argument)] ~= '' and redis.pcall('STRLEN', KEYS[1] .. ARGV[\(argument)]) == 0 then
      return {now, 'bare'}
    end
    """
  }

  private static let time = """
    local t = redis.call('TIME')
    local now = t[1] * 1000 + math.floor(t[2] / 1000)

    """

  private static let look =
    time + """
      local r = redis.call('GET', KEYS[1])

      """

  /// The end of a script that found no record of the caller.
  private static let lost = """

    if not r then return {now, 'none'} end
    if not string.find(r, '^1 %x+ [%a_]+ %d+ %d+ %d+ %d+ %d+ %d+ %S+ ') then return {now, 'unreadable', r} end
    return {now, 'standing', r}
    """
}
