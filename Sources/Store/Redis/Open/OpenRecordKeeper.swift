import Idempotency
import Logging
import Platform

/// One event loop's part in the index of open records: it enters what runs for more than a second and what becomes
/// unknown, and takes out what ends. Confined to its loop.
///
/// Nothing waits for it. What Redis does not take is sent again with the next turn, or after an `OpenIndexPause`; what a
/// process that dies has not sent is found by `RedisOpenIndex.repair`.
final class OpenRecordKeeper: @unchecked Sendable {
  /// The time from one turn to the next, in milliseconds.
  static let turn: Int64 = 1000
  private static let maxBatch = 500
  /// The number of records from which on what Redis does not take is dropped, for a listing or a walk to find.
  private static let maxWaiting = 100_000

  private unowned let nodes: RedisNodes
  private var running = RunningClaims()
  private var added: [RecordID: OpenEntry] = [:]
  private var removed: Set<RecordID> = []
  private var timer: LoopTimers.Token?
  /// Whether a write is under way. The next one follows it: a removal must not meet what was entered since.
  private var isWriting = false
  /// Whether a write is about to begin.
  private var isWriteDue = false
  private var waiting: [UnsafeContinuation<Void, Never>] = []

  init(of nodes: RedisNodes) { self.nodes = nodes }

  func granted(_ claim: Claim) {
    running.began(claim)
    startTimer()
  }

  func mayBeGranted(_ request: ClaimRequest) {
    running.mayHaveBegun(request, at: .now)
    startTimer()
  }

  /// Takes a renewed lease. That enters a record again that the index has lost.
  func renewed(_ claim: Claim, at now: StoreInstant) {
    guard !running.has(claim.owner) else { return }
    add(OpenEntry(id: claim.id, lapse: now + claim.lease, keyDigest: claim.attribution?.keyDigest))
  }

  func marksUnknown(_ claim: Claim) {
    _ = running.ended(claim.owner)
    add(OpenEntry(id: claim.id, lapse: nodes.openTime, keyDigest: claim.attribution?.keyDigest))
    writeSoon()
  }

  /// Takes the end of a claim, unless somebody else holds the record and cares for its entry.
  func ended(_ claim: Claim, isOpen: Bool = false) {
    guard running.ended(claim.owner), !isOpen else { return }
    remove(claim.id)
    // A removal that waited could meet the entry of a later owner at another node.
    writeSoon()
  }

  func decided(_ id: RecordID) {
    remove(id)
    writeSoon()
  }

  /// Enters a record whose delivery was refused because it cannot be read.
  func foundUnreadable(_ id: RecordID) { add(OpenEntry(id: id, lapse: nil, keyDigest: nil)) }

  private func add(_ entry: OpenEntry) {
    removed.remove(entry.id)
    if added.count >= Self.maxWaiting { added.removeAll() }
    added[entry.id] = entry
    startTimer()
  }

  private func remove(_ id: RecordID) {
    added[id] = nil
    if removed.count >= Self.maxWaiting { removed.removeAll() }
    removed.insert(id)
    startTimer()
  }

  private func startTimer() {
    guard timer == nil, !nodes.isClosed else { return }
    timer = nodes.context.timers.start(milliseconds: Self.turn) { [self, nodes] in
      timer = nil
      for entry in running.turn(at: .now, nodes.openTime) { add(entry) }
      writeSoon()
      if !running.isEmpty { startTimer() }
    }
  }

  func enters(_ id: RecordID) -> Bool { added[id] != nil }

  private func writeSoon() {
    guard !isWriteDue, !added.isEmpty || !removed.isEmpty else { return }
    isWriteDue = true
    nodes.context.task { [self, nodes] in
      await write()
      withExtendedLifetime(nodes) {}
    }
  }

  func write() async {
    while isWriting { await withUnsafeContinuation { waiting.append($0) } }
    isWriting = true
    await writeAll()
    isWriting = false
    let next = waiting
    waiting = []
    for continuation in next { continuation.resume() }
  }

  private func writeAll() async {
    isWriteDue = false
    guard !added.isEmpty || !removed.isEmpty else { return }
    guard await nodes.mayUseIndex() else { return startTimer() }
    // In an order that does not depend on the hashes of this process, which the simulator would not repeat.
    let entries = added.values.sorted { $0.id.text < $1.id.text }
    let ends = removed.sorted { $0.text < $1.text }
    added = [:]
    removed = []
    do throws(StoreError) {
      try await enter(entries)
      try await takeOut(ends)
    } catch {
      nodes.logger.debug("the index of open records was not written", metadata: ["error": "\(error.text)"])
      keep(entries, ends)
    }
  }

  private func keep(_ entries: [OpenEntry], _ ends: [RecordID]) {
    for entry in entries where added[entry.id] == nil && !removed.contains(entry.id) { add(entry) }
    for id in ends where added[id] == nil { remove(id) }
  }
}

extension OpenRecordKeeper {
  func enter(_ entries: [OpenEntry]) async throws(StoreError) {
    let keys = nodes.keys
    for part in Self.parts(of: entries) {
      try await send("ZADD", keys.open, part.flatMap { ["\($0.score)", $0.id.text] })
      let known = part.flatMap { entry in entry.keyScore.map { ["\($0)", entry.id.text] } ?? [] }
      if !known.isEmpty { try await send("ZADD", keys.openKeys, known) }
    }
  }

  func takeOut(_ ids: [RecordID]) async throws(StoreError) { try await takeOut(named: ids.map(\.text)) }

  /// Takes out entries by their names, which need not be those of records.
  func takeOut(named names: [String]) async throws(StoreError) {
    for part in Self.parts(of: names) {
      try await send("ZREM", nodes.keys.open, Array(part))
      try await send("ZREM", nodes.keys.openKeys, Array(part))
    }
  }

  private static func parts<Member>(of all: [Member]) -> [ArraySlice<Member>] {
    stride(from: 0, to: all.count, by: maxBatch).map { all[$0..<min($0 + maxBatch, all.count)] }
  }

  private func send(_ command: String, _ key: String, _ words: [String]) async throws(StoreError) {
    _ = try await nodes.indexReply(to: [command, key] + words)
  }
}

extension RedisNodes {
  /// The time of the server that has the index.
  var openTime: StoreInstant {
    let node = single ?? mapped(SlotMap.slot(of: keys.open))
    return node?.clock.estimate(at: .now) ?? StoreInstant(milliseconds: WallClock.milliseconds())
  }
}

struct OpenEntry: Equatable {
  let id: RecordID
  /// The end of its lease, or the loss of its outcome; `nil` if it cannot be read.
  let lapse: StoreInstant?
  let keyDigest: String?

  static let unreadableScore: Int64 = -1

  var score: Int64 { lapse.map { max(0, $0.milliseconds) } ?? Self.unreadableScore }

  var keyScore: UInt32? { keyDigest.flatMap { UInt32($0, radix: 16) } }
}

/// The claims of one event loop that run, until the index of open records has them. Pure. A claim that ends within a
/// turn or two never gets there.
struct RunningClaims {
  private struct Run {
    let id: RecordID
    let keyDigest: String?
    let lease: Milliseconds
    let began: BootInstant
    /// Whether the index may have the record already.
    let mayBeEntered: Bool
  }

  /// The claims since the last turn, and those of the turn before.
  private var latest: [OwnerToken: Run] = [:]
  private var earlier: [OwnerToken: Run] = [:]

  var isEmpty: Bool { latest.isEmpty && earlier.isEmpty }

  mutating func began(_ claim: Claim) {
    latest[claim.owner] = Run(
      id: claim.id, keyDigest: claim.attribution?.keyDigest, lease: claim.lease, began: claim.requestedAt,
      mayBeEntered: claim.followsUnknown)
  }

  /// Takes a claim whose reply is lost.
  mutating func mayHaveBegun(_ request: ClaimRequest, at now: BootInstant) {
    latest[request.owner] = Run(
      id: request.id, keyDigest: request.attribution?.keyDigest, lease: request.lease, began: now,
      mayBeEntered: true)
  }

  func has(_ owner: OwnerToken) -> Bool { latest[owner] != nil || earlier[owner] != nil }

  /// Returns whether the index may have the record of a claim that has ended.
  mutating func ended(_ owner: OwnerToken) -> Bool {
    guard let run = latest.removeValue(forKey: owner) ?? earlier.removeValue(forKey: owner) else {
      return true
    }
    return run.mayBeEntered
  }

  /// Begins the next turn, and returns the claims that have run for a whole one, which are the index's from now on.
  mutating func turn(at now: BootInstant, _ storeTime: StoreInstant) -> [OpenEntry] {
    let due = earlier.values.map { run in
      OpenEntry(id: run.id, lapse: storeTime + run.lease - (now - run.began), keyDigest: run.keyDigest)
    }
    earlier = latest
    latest = [:]
    return due
  }
}
