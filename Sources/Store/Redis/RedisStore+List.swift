import Idempotency
import Platform
import Wire

/// The list of open records and the search by origin, each by a walk over Redis' keys, without an index of all records.
extension RedisStore {
  private static let stepLength: Int64 = 100

  public func isCursor(_ text: String) -> Bool {
    if nodes.settings.topology.isCluster { return ClusterWalk(text) != nil }
    return text.utf8.allSatisfy { 0x30...0x39 ~= $0 } && UInt64(text) != nil
  }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    let (list, now, next) = try await walk(.list, after: cursor)
    var part = OpenRecords(records: [], unreadable: list.unreadable, next: next)
    for (id, record) in list.records {
      // A record from before Redis' clock was set back counts from the first look, and this may be that.
      let view = record.since > now ? try await look(id) : record.view(id, now: now)
      if let view, view.isOpen { part.records.append(view) }
    }
    return part
  }

  /// Returns a record as `find` leaves it; `nil` if there is none, or it cannot be read.
  private func look(_ id: RecordID) async throws(StoreError) -> RecordView? {
    let reply = try await nodes.run(.find, .record(id))
    return reply.finalResult?.record?.view(id, now: reply.now)
  }

  public func search(
    _ filter: RecordFilter, after cursor: String?
  ) async throws(StoreError) -> FoundRecords {
    let keys = filter.keyDigests.isEmpty ? "" : " \(filter.keyDigests.joined(separator: " ")) "
    let (list, _, next) = try await walk(
      .search, after: cursor, [keys, filter.callerDigest ?? "", filter.route ?? ""])
    var found = FoundRecords(ids: list.found, next: next)
    for id in list.refused {
      if filter.matches(try await attribution(of: id)) { found.ids.append(id) }
    }
    return found
  }

  private func attribution(of id: RecordID) async throws(StoreError) -> Attribution? {
    try await nodes.run(.find, .record(id)).result?.record?.attribution
  }

  /// One step of a walk, with the store's time and the cursor of the next step; that is `nil` at the end.
  ///
  /// - Parameter more: The script's arguments after those that `list` and `search` have.
  func walk(
    _ script: RedisScript, after cursor: String?, _ more: [String] = [], isUrgent: Bool = false
  ) async throws(StoreError) -> (RedisList, now: StoreInstant, next: String?) {
    if let cursor, !isCursor(cursor) { throw .unavailable("the list's cursor is not one of Redis'") }
    guard nodes.settings.topology.isCluster else {
      let (list, now) = try await step(script, at: nil, after: cursor ?? "0", more, isUrgent)
      return (list, now, list.cursor == "0" ? nil : list.cursor)
    }
    guard let map = nodes.map else {
      throw .unavailable("no node of the cluster has named the slots' masters yet")
    }
    guard let (place, master) = ClusterWalk.step(cursor.flatMap(ClusterWalk.init), in: map) else {
      return (RedisList(cursor: "0"), StoreInstant(milliseconds: 0), nil)
    }
    let (list, now) = try await step(script, at: master, after: place.cursor, more, isUrgent)
    return (list, now, place.after(cursor: list.cursor, in: nodes.map ?? map)?.text)
  }

  /// One step of the walk on one server, in a cluster on `master`.
  private func step(
    _ script: RedisScript, at master: ServerAddress?, after cursor: String, _ more: [String],
    _ isUrgent: Bool
  ) async throws(StoreError) -> (RedisList, StoreInstant) {
    await nodes.paceWalk()
    let began = BootInstant.now.nanoseconds
    defer { nodes.walkStepped(nanoseconds: BootInstant.now.nanoseconds - began, isUrgent: isUrgent) }
    let capacity = more.reduce(240 + keys.pattern.utf8.count) { $0 + $1.utf8.count + 16 }
    let route = master.map(RedisRoute.node) ?? .any
    let reply = try await nodes.run(script, route, capacity: capacity) { writer, _ in
      writer.argument(nodes.factsKey(of: master))
      writer.argument(cursor)
      writer.argument(keys.pattern)
      writer.argument(Self.stepLength)
      writer.argument(Int64(keys.prefix.utf8.count))
      for word in more { writer.argument(word) }
    }
    guard let list = reply.result?.list else {
      throw .unreadable("Redis' reply to a listing is not a list")
    }
    return (list, reply.now)
  }
}

extension RedisNodes {
  /// The pause after a step, as a multiple of its round trip: the part of Redis' time that a walk takes.
  private static let pauseFactor: Int64 = 10
  private static let urgentFactor: Int64 = 3
  private static let maxPause: Int64 = 200_000_000
  /// The pause up to which a step does not wait, and the time for which it may have waited in vain, in nanoseconds.
  private static let maxCarried: Int64 = 20_000_000

  /// Waits until the pause after the last step is over.
  func paceWalk() async {
    while true {
      let left = nextStepAt.nanoseconds - BootInstant.now.nanoseconds
      carriedPause = max(left, -Self.maxCarried)
      guard left > Self.maxCarried else { break }
      await context.sleep(milliseconds: left / 1_000_000 + 1)
    }
    // Until this step's duration is known, concurrent walks wait for the maximum.
    nextStepAt = BootInstant(nanoseconds: BootInstant.now.nanoseconds + Self.maxPause)
  }

  func walkStepped(nanoseconds: Int64, isUrgent: Bool = false) {
    let pause = max(0, nanoseconds) * (isUrgent ? Self.urgentFactor : Self.pauseFactor)
    let carried = pause < Self.maxPause ? carriedPause : max(0, carriedPause)
    nextStepAt = BootInstant(
      nanoseconds: BootInstant.now.nanoseconds + min(Self.maxPause, pause + carried))
  }
}

/// The result of one step of the walk.
struct RedisList {
  /// The character before the ID of a record that a search could not read.
  private static let refusedMark: Character = "?"

  var cursor: String
  var records: [(RecordID, RedisRecord)] = []
  var unreadable: [RecordID] = []
  var found: [RecordID] = []
  /// The records that the searched server has refused to read.
  var refused: [RecordID] = []

  init(cursor: String) { self.cursor = cursor }

  init?(_ reply: borrowing HiredisReply, hasTexts: Bool) {
    guard let cursor = reply.withBytes(at: 2, { String(decoding: $0, as: UTF8.self) }) else { return nil }
    self.cursor = cursor
    let width = hasTexts ? 2 : 1
    for index in stride(from: 3, to: reply.count - width + 1, by: width) {
      guard let name = reply.withBytes(at: index, { String(decoding: $0, as: UTF8.self) }) else { continue }
      let isRefused = !hasTexts && name.first == Self.refusedMark
      guard let id = RecordID(text: isRefused ? String(name.dropFirst()) : name) else { continue }
      guard hasTexts else {
        if isRefused { refused.append(id) } else { found.append(id) }
        continue
      }
      if let record = reply.withBytes(at: index + 1, { RedisRecord($0, isAttributed: true) }) ?? nil {
        records.append((id, record))
      } else {
        unreadable.append(id)
      }
    }
  }
}
