import Idempotency
import Platform

/// The list of open records, by a walk over Redis' keys. An index would cost every request, and the list is rarely
/// needed.
extension RedisStore {
  /// The number of keys per step. All other commands wait for a step, so it takes only a small part of a millisecond.
  private static let stepLength: Int64 = 100

  public func isCursor(_ text: String) -> Bool {
    if case .cluster = nodes.settings.topology { return ClusterWalk(text) != nil }
    return text.utf8.allSatisfy { 0x30...0x39 ~= $0 } && UInt64(text) != nil
  }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    if let cursor, !isCursor(cursor) { throw .unavailable("the list's cursor is not one of Redis'") }
    guard case .cluster = nodes.settings.topology else {
      let (records, next) = try await step(.any, after: cursor ?? "0")
      return OpenRecords(
        records: records.records, unreadable: records.unreadable, next: next == "0" ? nil : next)
    }
    guard let map = nodes.map else {
      throw .unavailable("no node of the cluster has named the slots' masters yet")
    }
    guard let (master, own) = ClusterWalk.step(cursor.flatMap(ClusterWalk.init), in: map) else {
      return OpenRecords(records: [], unreadable: [], next: nil)
    }
    let (records, next) = try await step(.node(master), after: own)
    return OpenRecords(
      records: records.records, unreadable: records.unreadable,
      next: ClusterWalk.after(master, cursor: next, in: map)?.text)
  }

  /// One step of the walk on one server, and the server's next cursor.
  private func step(
    _ route: RedisRoute, after cursor: String
  ) async throws(StoreError) -> (OpenRecords, next: String) {
    await nodes.paceWalk()
    let began = BootInstant.now.nanoseconds
    defer { nodes.walkStepped(nanoseconds: BootInstant.now.nanoseconds - began) }
    let capacity = 160 + keys.pattern.utf8.count
    let reply = try await nodes.run(.list, route, capacity: capacity) { writer, _ in
      writer.argument(cursor)
      writer.argument(keys.pattern)
      writer.argument(Self.stepLength)
      writer.argument(Int64(keys.prefix.utf8.count))
    }
    guard case .result(let result) = reply.ending, let list = result.list else {
      throw .unreadable("Redis' reply to a listing is not a list")
    }
    let records = list.records.compactMap { id, record in
      OpenRecord(
        id: id, standing: record.standing(now: reply.now, response: nil), firstSeen: record.firstSeen,
        now: reply.now)
    }
    return (OpenRecords(records: records, unreadable: list.unreadable, next: nil), list.cursor)
  }
}

extension RedisNodes {
  /// The pause after a step, as a multiple of its round trip, which limits the part of Redis' time that a walk takes.
  /// The round trip is longer than Redis' work on the step, and grows when Redis is busy.
  private static let pauseFactor: Int64 = 10
  /// The maximum pause, in nanoseconds.
  private static let maxPause: Int64 = 200_000_000

  /// Waits until the pause after the last step is over, whichever caller made it.
  func paceWalk() async {
    while true {
      let left = nextStepAt.nanoseconds - BootInstant.now.nanoseconds
      guard left > 0 else { break }
      await context.sleep(milliseconds: left / 1_000_000 + 1)
    }
    // Until this step's duration is known, concurrent walks wait for the maximum.
    nextStepAt = BootInstant(nanoseconds: BootInstant.now.nanoseconds + Self.maxPause)
  }

  func walkStepped(nanoseconds: Int64) {
    let pause = min(Self.maxPause, max(0, nanoseconds) * Self.pauseFactor)
    nextStepAt = BootInstant(nanoseconds: BootInstant.now.nanoseconds + pause)
  }
}

/// The result of one step of the walk.
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
