import Idempotency
import Platform
import Wire

/// The index of open records in Redis: two sorted sets of the IDs of records, without a slot in common with these.
/// `NAMESPACE:open` has each record at the time of its loss, or of its lease's lapse; what cannot be read is at -1.
/// `NAMESPACE:open:keys` has it at the digest of its key, as a number. An entry is a hint, which no script reads or
/// writes: a first run of less than a second costs Redis nothing. One node of a cluster has both sets.
///
/// Confined to the store's loop.
public struct RedisOpenIndex: OpenRecordIndex {
  private static let partLength = 100
  /// The number of keys up to which a store is small.
  static let maxSmallSize: Int64 = 10_000
  /// The limit of the scores, which no time reaches.
  private static let maxScore = Double(1 << 50)
  /// The difference up to which an entry's time is right, in milliseconds.
  private static let maxDrift: Int64 = 1000

  let store: RedisStore

  private var nodes: RedisNodes { store.nodes }

  private struct Place {
    /// The lowest score that is left, and the number of its records that were listed.
    var score: Int64
    var listed: Int

    init(score: Int64, listed: Int) {
      self.score = score
      self.listed = listed
    }

    init?(_ text: String) {
      guard text.first == "o" else { return nil }
      let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 2, let score = Int64(parts[0]), let listed = Int(parts[1]), listed >= 0 else {
        return nil
      }
      self.init(score: score, listed: listed)
    }

    var text: String { "o\(score).\(listed)" }
  }

  public func isCursor(_ text: String) -> Bool { Place(text) != nil }

  public func isNeeded() async -> Bool {
    guard await nodes.mayUseIndex() else { return false }
    var size: Int64 = 0
    for route in nodes.single == nil ? nodes.masters.compactMap(\.link.address).map(RedisRoute.node) : [.any]
    {
      guard case .integer(let count)? = try? await nodes.reply(to: ["DBSIZE"], route) else { return true }
      size += count
    }
    return size > Self.maxSmallSize
  }

  public func open(after cursor: String?) async throws(StoreError) -> OpenRecords {
    await nodes.keeper.write()
    let place = cursor.flatMap(Place.init)
    guard cursor == nil || place != nil else {
      throw .unavailable("the list's cursor is not one of the index")
    }
    let (entries, count, last) = try await entries(from: place)
    let isLast = count < Self.partLength
    var (part, listed) = (OpenRecords(records: [], next: nil), last == place?.score ? place?.listed ?? 0 : 0)
    for (entry, finding) in try await read(entries.map(\.id), scores: entries.map(\.score)) {
      if entry.score == last, finding.staysAt(last) { listed += 1 }
      switch finding {
      case .open(let view, let lapse):
        // A record that has moved behind this part is listed with a later one.
        let isLater = !finding.staysAt(entry.score) && lapse.milliseconds > last
        if isLast || !isLater { part.records.append(view) }
      case .unreadable: part.unreadable.append(entry.id)
      case .gone: break
      }
    }
    if !isLast { part.next = Place(score: last, listed: listed).text }
    return part
  }

  private struct Entry {
    let id: RecordID
    let score: Int64
  }

  /// The entries from a place on, the number of all that were read, and the score of the last one. What is no entry is
  /// taken out: it would end the listing early.
  private func entries(
    from place: Place?
  ) async throws(StoreError) -> (entries: [Entry], count: Int, last: Int64) {
    let range = [place.map { "\($0.score)" } ?? "-inf", "+inf"]
    let limit = ["LIMIT", "\(place?.listed ?? 0)", "\(Self.partLength)"]
    let reply = try await nodes.indexReply(
      to: ["ZRANGEBYSCORE", nodes.keys.open] + range + ["WITHSCORES"] + limit)
    guard case .array(let words) = reply else { throw .unreadable("Redis' reply is no part of a sorted set") }
    var (entries, strangers, last): ([Entry], [String], Int64) = ([], [], 0)
    for index in stride(from: 0, to: words.count - 1, by: 2) {
      guard let name = words[index].text, let score = words[index + 1].text.flatMap(Self.score) else {
        throw .unreadable("Redis' reply is no part of a sorted set")
      }
      last = score
      if let id = RecordID(text: name) {
        entries.append(Entry(id: id, score: score))
      } else {
        strangers.append(name)
      }
    }
    try await nodes.keeper.takeOut(named: strangers)
    return (entries, words.count / 2, last)
  }

  /// The score of a text, within what times can be.
  private static func score(_ text: String) -> Int64? {
    guard let value = Double(text), !value.isNaN else { return nil }
    return Int64(min(max(value.rounded(.down), -Self.maxScore), Self.maxScore))
  }

  public func count() async throws(StoreError) -> OpenCount {
    await nodes.keeper.write()
    let now = nodes.openTime.milliseconds
    return OpenCount(
      inFlight: try await count("(\(now)", "+inf"), unknown: try await count("0", "\(now)"),
      unreadable: try await count("-inf", "(0"))
  }

  private func count(_ low: String, _ high: String) async throws(StoreError) -> Int {
    let reply = try await nodes.indexReply(to: ["ZCOUNT", nodes.keys.open, low, high])
    guard case .integer(let count) = reply else { throw .unreadable("Redis' reply is no number") }
    return Int(count)
  }

  public func open(matching filter: RecordFilter) async throws(StoreError) -> [RecordID] {
    await nodes.keeper.write()
    let key = nodes.keys.openKeys
    var found: [RecordID] = []
    for score in filter.keyDigests.compactMap({ UInt32($0, radix: 16) }) {
      let reply = try await nodes.indexReply(to: ["ZRANGEBYSCORE", key, "\(score)", "\(score)"])
      guard case .array(let words) = reply else {
        throw .unreadable("Redis' reply is no part of a sorted set")
      }
      found += words.compactMap { $0.text.flatMap(RecordID.init(text:)) }
    }
    var ids: [RecordID] = []
    for part in stride(from: 0, to: found.count, by: Self.partLength) {
      let chunk = Array(found[part..<min(part + Self.partLength, found.count)])
      for case (let entry, .open(let view, _)) in try await read(chunk, scores: nil)
      where filter.matches(view.attribution) { ids.append(entry.id) }
    }
    return ids
  }

  public func repair(after cursor: String?, isUrgent: Bool) async throws(StoreError) -> String? {
    guard await nodes.mayUseIndex() else { throw .refused("Redis forbids the index of open records") }
    let (list, now, next) = try await store.walk(.list, after: cursor, isUrgent: isUrgent)
    let views = list.records.map { (view: $1.view($0, now: now), lapse: $1.lapse) }
    try await nodes.keeper.enter(
      views.filter(\.view.isOpen).map {
        OpenEntry(id: $0.view.id, lapse: $0.lapse, keyDigest: $0.view.attribution?.keyDigest)
      } + list.unreadable.map { OpenEntry(id: $0, lapse: nil, keyDigest: nil) })
    return next
  }
}

extension RedisOpenIndex {
  private enum Finding: Sendable {
    case open(RecordView, lapse: StoreInstant)
    case unreadable
    case gone

    /// Whether the entry stays at this score.
    func staysAt(_ score: Int64) -> Bool {
      switch self {
      case .open(_, let lapse): abs(lapse.milliseconds - score) <= maxDrift
      case .unreadable: score == OpenEntry.unreadableScore
      case .gone: false
      }
    }
  }

  /// Reads records at once, in the order of their entries. Takes those out that are not open any more, and sets the
  /// times of others right if their scores are given.
  private func read(
    _ ids: [RecordID], scores: [Int64]?
  ) async throws(StoreError) -> [(Entry, Finding)] {
    let found = await withTaskGroup(of: (Int, Result<Finding, StoreError>).self) { group in
      for (index, id) in ids.enumerated() {
        let isUnreadable = scores?[index] == OpenEntry.unreadableScore
        group.addTask { (index, await finding(id, isUnreadable: isUnreadable)) }
      }
      var all: [Result<Finding, StoreError>] = ids.map { _ in .success(.gone) }
      for await (index, result) in group { all[index] = result }
      return all
    }
    var (result, gone, moved): ([(Entry, Finding)], [RecordID], [OpenEntry]) = ([], [], [])
    for (index, id) in ids.enumerated() {
      let finding = try found[index].get()
      let score = scores?[index]
      result.append((Entry(id: id, score: score ?? 0), finding))
      if case .gone = finding { gone.append(id) }
      if let score, !finding.staysAt(score), let entry = Self.entry(id, finding) { moved.append(entry) }
    }
    // A record that has become open here since is this loop's to enter.
    try await nodes.keeper.takeOut(gone.filter { !nodes.keeper.enters($0) })
    try await nodes.keeper.enter(moved)
    return result
  }

  private static func entry(_ id: RecordID, _ finding: Finding) -> OpenEntry? {
    switch finding {
    case .open(let view, let lapse):
      OpenEntry(id: id, lapse: lapse, keyDigest: view.attribution?.keyDigest)
    case .unreadable: OpenEntry(id: id, lapse: nil, keyDigest: nil)
    case .gone: nil
    }
  }

  /// - Parameter isUnreadable: Whether the record could not be read before: its response is read, too.
  private func finding(_ id: RecordID, isUnreadable: Bool) async -> Result<Finding, StoreError> {
    do throws(StoreError) {
      if isUnreadable { _ = try await store.inspect(id) }
      let reply = try await nodes.run(.find, .record(id))
      guard let result = reply.finalResult else { return .success(.gone) }
      guard result.unreadable == nil else { return .success(.unreadable) }
      guard let record = result.record else { return .success(.gone) }
      let view = record.view(id, now: reply.now)
      return .success(view.isOpen ? .open(view, lapse: record.lapse) : .gone)
    } catch {
      if case .unreadable = error { return .success(.unreadable) }
      return .failure(error)
    }
  }
}

extension RedisRecord {
  fileprivate var lapse: StoreInstant { since + span }
}

extension RedisStore {
  public var openIndex: (any OpenRecordIndex)? { RedisOpenIndex(store: self) }
}
