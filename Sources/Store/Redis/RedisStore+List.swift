import Idempotency
import Loop

/// Open records, by a walk over Redis' keys: an index would cost every request, and this list nobody asks for often.
extension RedisStore {
  /// The number of keys that a step meets: everybody waits for it, so it takes Redis a small part of a millisecond.
  private static let stepLength: Int64 = 100

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    let cursor = cursor ?? "0"
    guard !cursor.isEmpty, cursor.utf8.count <= 20, cursor.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
      throw .unavailable("the list's cursor is not one of Redis'")
    }
    await pipeline.paceWalk()
    let began = bootTimeNanoseconds()
    defer { pipeline.walkStepped(nanoseconds: bootTimeNanoseconds() - began) }
    let capacity = 160 + keys.pattern.utf8.count
    let answer = try await pipeline.ask(.list, nil, capacity: capacity) { writer, _ in
      writer.argument(cursor)
      writer.argument(keys.pattern)
      writer.argument(Self.stepLength)
      writer.argument(Int64(keys.prefix.utf8.count))
    }
    guard case .told(let told) = answer.ending, let list = told.list else {
      throw .unreadable("Redis' answer to a list is none")
    }
    let records = list.records.compactMap { id, record in
      OpenRecord(
        id: id, standing: record.standing(now: answer.now, response: nil), firstSeen: record.firstSeen,
        now: answer.now)
    }
    return OpenRecords(
      records: records, unreadable: list.unreadable, next: list.cursor == "0" ? nil : list.cursor)
  }
}

extension RedisPipeline {
  /// The part of Redis' time that a walk may take, at most: its steps are followed by pauses ten times their round
  /// trip, which is longer than Redis works on them, and the longer the busier it is.
  private static let pauseFactor: Int64 = 10
  private static let maxPause: Int64 = 200_000_000

  /// Waits until the pause after the last step is over, whoever walked.
  func paceWalk() async {
    while true {
      let left = nextStepAt.nanoseconds - bootTimeNanoseconds()
      guard left > 0 else { break }
      await context.sleep(milliseconds: left / 1_000_000 + 1)
    }
    // Until the step's own time is known, others that walk at the same time wait as long as it may take.
    nextStepAt = BootInstant(nanoseconds: bootTimeNanoseconds() + Self.maxPause)
  }

  func walkStepped(nanoseconds: Int64) {
    let pause = min(Self.maxPause, max(0, nanoseconds) * Self.pauseFactor)
    nextStepAt = BootInstant(nanoseconds: bootTimeNanoseconds() + pause)
  }
}

/// What a step of the walk met.
struct RedisList {
  var cursor: String
  var records: [(RecordID, RedisRecord)] = []
  var unreadable: [RecordID] = []

  init?(_ reply: borrowing HiredisReply) {
    guard let cursor = reply.withBytes(at: 2, { String(decoding: $0, as: UTF8.self) }) else { return nil }
    self.cursor = cursor
    for index in stride(from: 3, to: reply.count - 1, by: 2) {
      guard
        let id = reply.withBytes(at: index, { RecordID(text: String(decoding: $0, as: UTF8.self)) }) ?? nil
      else { continue }
      if let record = reply.withBytes(at: index + 1, { RedisRecord($0) }) ?? nil {
        records.append((id, record))
      } else {
        unreadable.append(id)
      }
    }
  }
}
