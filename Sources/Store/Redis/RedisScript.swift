/// The steps on a record that Redis runs, each whole and by its own clock.
///
/// A record is one text under `NAMESPACE:{ID}`, its parts parted by a space:
///
///     1 OWNER STATE ATTEMPT FIRST SINCE SPAN UNKNOWN REMEMBER FLAGS FINGERPRINT RECIPE [STATUS [LOCATION]]
///
/// `1` is the version. `SINCE` and `SPAN` are, in milliseconds: grant and lease (`in_flight`), the loss and 0
/// (`unknown`), the release and 0 (`released`), completion and retention (`completed`), and the moment and the
/// fence (`forgotten`). `FLAGS` are `o` (only rejected so far), `u` (follows an unknown outcome), `k` (the answer is
/// kept under `NAMESPACE:{ID}:r`), `f` and the instant until which the fence of a record that was forgotten before
/// stands, or `-`. The key lives at least as long as that fence. One text takes a quarter less of Redis' time a claim
/// than a hash.
///
/// Every script looks first and writes last, what belongs to an answer before its record, so that an error in it
/// leaves nothing half done; `PUBLISH` may be forbidden to Semel, and must not fail what was written. It costs less
/// than can be measured where nobody listens, so nothing has to know whether somebody does.
///
/// The reply is the store's time alone where all went as wanted, else an array: the time, a word whose first letter
/// tells, and what belongs to it.
enum RedisScript: Int, CaseIterable {
  case claim, renew, complete, release, markUnknown, find, forget, resolve, list, fact, clock

  /// What the script is in Lua 5.1.
  var source: String {
    switch self {
    case .claim: Self.time + Self.claimSource
    case .renew: Self.look + Self.renewSource + Self.lost
    case .complete: Self.look + Self.completeSource + Self.lost
    case .release: Self.look + Self.releaseSource + Self.lost
    case .markUnknown: Self.look + Self.markUnknownSource + Self.lost
    case .find: Self.look + Self.findSource + Self.lost
    case .forget: Self.time + Self.forgetSource
    case .resolve: Self.look + Self.resolveSource + Self.lost
    case .list: Self.time + Self.listSource
    case .fact: Self.time + Self.factSource
    case .clock: Self.time + "return now"
    }
  }

  /// How many keys and further arguments it takes.
  var arguments: (keys: Int, others: Int) {
    switch self {
    case .claim: (2, 6)
    case .renew: (2, 4)
    case .complete: (2, 6)
    case .release: (2, 2)
    case .markUnknown: (2, 4)
    case .find: (2, 0)
    case .forget: (2, 5)
    case .resolve: (2, 10)
    case .list: (0, 4)
    case .fact: (1, 3)
    case .clock: (0, 0)
    }
  }

  private static let time = """
    local t = redis.call('TIME')
    local now = t[1] * 1000 + math.floor(t[2] / 1000)

    """

  private static let look =
    time + """
      local r = redis.call('GET', KEYS[1])

      """

  /// What is told of a record that is not the caller's: as it stands, with the answer where that still counts.
  private static let lost = """

    if not r then return {now, 'none'} end
    local state, since, span, flags =
      string.match(r, '^1 %x+ ([%a_]+) %d+ %d+ (%d+) (%d+) %d+ %d+ (%S+) ')
    if not state then return {now, 'unreadable', r} end
    if state == 'completed' and string.find(flags, 'k', 1, true) and now < since + span then
      return {now, 'standing', r, redis.call('GET', KEYS[2])}
    end
    return {now, 'standing', r}
    """
}
