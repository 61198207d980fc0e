import Idempotency
import NIOCore
import Platform
import Wire

/// The large responses, which go over connections of their own and take turns.
extension RedisNodes {
  /// The size up to which a response is written among the other commands, in bytes.
  private static let maxAmongOthers = 64 << 10
  /// The size that a response counts as while it is read, in bytes.
  private static let assumedBytes = 1 << 20

  private static let noTurn = "others' large responses took too long"

  static func isLarge(_ write: RedisPlainCommand) -> Bool { write.capacity > maxAmongOthers }

  func writeLarge(_ write: RedisPlainCommand, _ id: RecordID, turn: Int) async throws(StoreError) {
    guard let place = await turns.begin(caller: turn, bytes: write.capacity) else {
      throw .busy(Self.noTurn)
    }
    defer { turns.end(place) }
    do throws(StoreError) {
      _ = try await exchange(write, id)
    } catch {
      // Redis will not take a value of this size the next time either.
      if case .refused(let reason) = error { throw .busy(reason) }
      throw error
    }
  }

  /// Reads the response under a key; `nil` if there is none. Those who want it at the same time share one reading.
  func readResponse(
    _ key: String, of id: RecordID, for reader: (any ResponseReader)?
  ) async throws(StoreError) -> ByteBuffer? {
    if let reading = readings[key] { return try await reading.result(for: reader).get() }
    let reading = ResponseReading(for: reader)
    readings[key] = reading
    let result = await ResponseReading.Result(awaiting: { () async throws(StoreError) in
      try await read(key, of: id, turn: reader?.turn ?? 0, reading)
    })
    readings[key] = nil
    reading.end(result)
    return try result.get()
  }

  private func read(
    _ key: String, of id: RecordID, turn: Int, _ reading: ResponseReading
  ) async throws(StoreError) -> ByteBuffer? {
    guard let place = await turns.begin(caller: turn, bytes: Self.assumedBytes) else {
      throw .busy(Self.noTurn)
    }
    defer { turns.end(place) }
    guard reading.isWanted else { throw .busy("the client is gone") }
    guard case .value(let bytes) = try await exchange(RedisPlainCommand(["GET", key]), id) else { return nil }
    return bytes
  }

  /// Sends a command over the connection for responses, and again if that was lost early, as one that has rested.
  private func exchange(
    _ command: RedisPlainCommand, _ id: RecordID
  ) async throws(StoreError) -> RedisPlainCommand.Reply {
    var copies = newAttempts()
    var isRepeated = false
    while true {
      let (pipeline, isAsking) = try await node(.record(id), nil, &copies)
      counters.countRoundTrip()
      let sentAt = BootInstant.now
      let reply = await withUnsafeContinuation { waiter in
        pipeline.responses.send(command, isAsking: isAsking) { waiter.resume(returning: $0) }
      }
      copies.restart(at: .now)
      switch reply {
      case .refused(let text): try takeRefusal(text, at: pipeline, &copies)
      case .lost(let reason):
        if !isRepeated, BootInstant.now - sentAt < settings.timeout {
          isRepeated = true
        } else {
          throw await answers(pipeline) ? .busy(reason) : .unavailable(reason)
        }
      case .value, .integer, .none: return reply
      }
    }
  }

  private func answers(_ pipeline: RedisPipeline) async -> Bool {
    guard pipeline.link.isUp else { return false }
    return await withUnsafeContinuation { waiter in
      pipeline.query(["PING"]) { waiter.resume(returning: $0 != nil) }
    }
  }
}

extension RedisNodes {
  /// Whether the server that has a record answers nobody. Waits for the verdict of a fresh connection.
  func isDown(for id: RecordID) async -> Bool {
    let deadline = BootInstant.now + settings.timeout + settings.timeout
    while true {
      let now = BootInstant.now
      if let verdict = isSilent(for: id, at: now) { return verdict }
      guard now < deadline else { return false }
      await change(by: min(deadline, now + settings.timeout / 8))
    }
  }

  private func isSilent(for id: RecordID, at now: BootInstant) -> Bool? {
    if let node = single ?? mapped(SlotMap.slot(of: id)) { return node.link.isServerSilent(at: now) }
    // A cluster without a map is down if no node answers, but not one that leaves the slot unserved.
    guard map == nil else { return false }
    let verdicts = all.map { $0.link.isServerSilent(at: now) }
    if verdicts.contains(false) { return false }
    return verdicts.contains(nil) ? nil : true
  }
}

/// One reading of a response, for all deliveries that want it: the key names the owner that has written it. Confined to
/// its loop.
final class ResponseReading {
  typealias Result = Swift.Result<ByteBuffer?, StoreError>

  private var readers: [(any ResponseReader)?]
  private var waiters: [UnsafeContinuation<Result, Never>] = []

  init(for reader: (any ResponseReader)?) { readers = [reader] }

  var isWanted: Bool { readers.contains { $0?.isConnected ?? true } }

  func result(for reader: (any ResponseReader)?) async -> Result {
    readers.append(reader)
    return await withUnsafeContinuation { waiters.append($0) }
  }

  func end(_ result: Result) {
    let ended = waiters
    waiters = []
    invariant(ended.count == readers.count - 1, "a reader of a response is not told of its end")
    for waiter in ended { waiter.resume(returning: result) }
  }
}

/// The turns of one event loop's large responses. Confined to its loop.
final class ResponseTurns {
  /// The bytes that may be on their way at once.
  private static let budget = 8 << 20
  /// The time for which a response waits for its turn.
  static let maxWait: Milliseconds = 5000

  private let timers: LoopTimers
  private var queue = TurnQueue(budget: budget)
  private var waiters: [TurnQueue.Place: Signal] = [:]

  init(timers: LoopTimers) { self.timers = timers }

  /// Waits for a turn, after which `end` must be called; `nil` if that took too long.
  func begin(caller: Int, bytes: Int) async -> TurnQueue.Place? {
    let place = queue.enter(caller: caller, bytes: bytes)
    let signal = Signal(timers: timers)
    waiters[place] = signal
    wakeNext()
    if case .signalled = await signal.wait(milliseconds: Self.maxWait.count) { return place }
    guard waiters.removeValue(forKey: place) != nil else { return place }
    queue.leave(place)
    return nil
  }

  func end(_ place: TurnQueue.Place) {
    queue.end(place)
    wakeNext()
  }

  private func wakeNext() {
    while let place = queue.takeNext() {
      guard let waiter = waiters.removeValue(forKey: place) else {
        invariantBroken("the turn comes of a response that does not wait")
      }
      waiter.set()
    }
  }
}
