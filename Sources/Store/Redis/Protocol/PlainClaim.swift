import Idempotency
import Wire

/// A claim without a script: `SET KEY RECORD NX GET PX TTL`, which makes a record or returns the one that is there.
///
/// It takes Redis a third of the time of the script, and is used under load (`RedisLoad`). It decides the two common
/// cases: the record is new, or it is completed with the same payload. In all others it has changed nothing, and the
/// script follows.
///
/// It neither takes nor brings Redis' time. The lease begins by an estimate of the store's clock (`RedisClock.latest`)
/// that is behind it by no more than the margin of a `SendPermit`, so that nothing is sent after it has lapsed. There is
/// no deadline either: a Redis that stood still runs the command after Semel has given up. Semel therefore ends the earlier connection, with all that Redis has not read
/// of it, before it repeats the claim or gives it back over the next one (`RedisPipeline.endEarlierConnections`;
/// Tests/Model/claim.pml, NO_KILL).
struct PlainClaim {
  /// The time of the claim by an estimate of the store's clock that is never ahead of it.
  let firstSeen: StoreInstant
  /// The beginning of the lease, by one that is behind it by no more than a step of the clock that does not count.
  let since: StoreInstant
  /// The attempt number in that record.
  let attempt: Int

  /// The beginning of the command, up to the key.
  static let head: [UInt8] = Array("*7\r\n$3\r\nSET\r\n".utf8)
}

extension RedisCommandWriter {
  /// Writes the arguments of a claim without a script, after the key.
  mutating func plainClaim(_ request: ClaimRequest, _ claim: PlainClaim) {
    argument {
      $0.literal("1 ")
      $0.token(request.owner)
      $0.literal(" in_flight ")
      $0.number(claim.attempt)
      $0.literal(" ")
      $0.number(claim.firstSeen.milliseconds)
      $0.literal(" ")
      $0.number(claim.since.milliseconds)
      $0.literal(" ")
      $0.spans(of: request)
      $0.literal(" o ")
      $0.fingerprint(of: request)
      $0.attribution(request.attribution)
    }
    literal("$2\r\nNX\r\n$3\r\nGET\r\n$2\r\nPX\r\n")
    timeToLive(request.lease, request.unknownRetention, request.remember)
  }
}

extension ScriptReply {
  /// Reads the reply to a claim without a script.
  ///
  /// - Parameters:
  ///   - reply: The reply.
  ///   - claim: The claim.
  ///   - now: The present time by an estimate of the store's clock that is never ahead of it.
  init(_ reply: borrowing HiredisReply, to claim: PlainClaim, now: StoreInstant) {
    self.init(ending: .undecided, now: now, isEstimated: true, plain: claim)
    switch reply.kind {
    case .null: ending = .done
    case .text:
      let result = reply.withBytes { ScriptResult(.standing, recordIn: $0) }
      // Whether the retention is over is for Redis' own time to say.
      if let record = result.record, record.state == .completed, record.fencedUntil == nil,
        record.since + record.span > now + Milliseconds(RedisClock.maxWidth)
      {
        ending = .result(result)
      }
    case .error, .integer, .array: break
    }
  }

  /// Whether a claim without a script has met the record of another payload, or of one that was read in another way.
  func isOfAnotherPayload(than request: ClaimRequest) -> Bool {
    guard plain != nil, case .result(let result) = ending, let record = result.record else { return false }
    return !record.hasFingerprint(request.fingerprint)
  }
}

extension RedisRecord {
  /// Whether the record has this fingerprint.
  func hasFingerprint(_ fingerprint: Fingerprint) -> Bool {
    var (text, recipe) = (self.fingerprint, fingerprint.recipe.text)
    let length = Digest256.textLength
    return text.withUTF8 { text in
      let text = UnsafeRawBufferPointer(text)
      guard text.count > length, text[length] == 0x20 else { return false }
      let isSameRecipe = recipe.withUTF8 {
        ASCII.equals(UnsafeRawBufferPointer(rebasing: text[(length + 1)...]), UnsafeRawBufferPointer($0))
      }
      return isSameRecipe
        && withUnsafeTemporaryAllocation(of: UInt8.self, capacity: length) { digest in
          guard let start = digest.baseAddress else { return false }
          fingerprint.digest.writeText(to: start)
          return ASCII.equals(
            UnsafeRawBufferPointer(rebasing: text[..<length]), UnsafeRawBufferPointer(digest))
        }
    }
  }
}
