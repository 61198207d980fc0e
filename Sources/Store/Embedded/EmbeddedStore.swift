import GRDB
import Idempotency
import Logging
import NIOCore
import NIOPosix
import Platform
import Synchronization

/// A record store in one SQLite file, which one process has open.
///
/// Usable from tasks on any event loop. An acknowledged change is on the disk: neither kill -9 nor a power cut loses
/// it. All commands that arrived while the disk was busy share one wait for it.
public final class EmbeddedStore: RecordStore {
  private let writer: EmbeddedWriter
  private let file: DatabaseQueue
  private let presence: FilePresence
  private let lock: FileLock
  private let codec: OutcomeCodec
  /// The number below which no attempt of this generation is: see `FileLoss`.
  private let firstAttempts: Int

  /// Opens the file, or creates it. Blocks; called once, at start.
  ///
  /// - Parameters:
  ///   - timeout: The maximum duration of a command.
  ///   - requiresDurable: Whether a deleted database is refused instead of made anew, and one that has lost changes.
  ///   - codec: The form in which outcomes are stored.
  ///   - flushLog: Returns once the entries of the logger are written.
  public convenience init(
    path: String, timeout: Milliseconds = .seconds(10), requiresDurable: Bool = false,
    codec: OutcomeCodec = .plain, logger: Logger, flushLog: () -> Void = {}
  ) throws(EmbeddedStoreError) {
    try self.init(
      path: path, timeout: timeout, requiresDurable: requiresDurable, codec: codec,
      logBound: FileSpace.logBound, logger: logger, flushLog: flushLog)
  }

  /// - Parameter logBound: The length of SQLite's log, in bytes, from which it is emptied explicitly.
  init(
    path: String, timeout: Milliseconds = .seconds(10), requiresDurable: Bool = false,
    codec: OutcomeCodec = .plain, logBound: Int, logger: Logger, flushLog: () -> Void = {}
  ) throws(EmbeddedStoreError) {
    let path = StoreFile.resolved(path)
    let lock = try FileLock(of: path, refusesLoss: requiresDurable)
    let opened = try StoreFile.opened(path, refusesLoss: requiresDurable, under: lock)
    Self.log(opened, path: path, to: logger)
    // A loss that is noted is not found again, and must therefore be in the log before.
    if opened.loss != nil { flushLog() }
    lock.keep(opened.progress)
    monitor = StoreMonitor(.serving)
    let writer = EmbeddedWriter(
      clock: opened.clock, timeout: timeout, logBound: logBound, monitor: monitor, logger: logger)
    let presence = FilePresence(path: path, database: lock.database)
    file = opened.queue
    self.presence = presence
    self.writer = writer
    self.lock = lock
    self.codec = codec
    firstAttempts = opened.progress.generation * Claim.attemptsPerGeneration
    if opened.loss != nil { writer.figures.withLock { $0.losses = 1 } }
    file.asyncWriteWithoutTransaction { database in
      // A store that is dropped without `close` keeps its lock until its last group is on the disk.
      writer.run(on: database, presence, under: lock)
    }
  }

  deinit { writer.queue.close() }

  private static func log(_ opened: StoreFile.Opened, path: String, to logger: Logger) {
    if let loss = opened.loss {
      logger.critical("store: \(loss.report(at: path))", metadata: ["file": "\(path)"])
    }
    if let delay = opened.clock.delay {
      logger.warning(
        """
        store: the clock is far ahead of the last change: Semel was stopped for so long, or the clock is wrong; all \
        records are kept so much longer
        """, metadata: ["by_ms": "\(delay.count)"])
    }
    if let excess = opened.clock.excess {
      logger.warning(
        """
        store: the clock is far behind the last change: it is wrong now, or was then; completed records are kept so \
        much longer
        """, metadata: ["by_ms": "\(excess.count)"])
    }
  }

  /// Runs the commands that wait, and closes the file. Every later command is refused.
  public func close() async {
    writer.queue.close()
    // Runs behind the writer's one long job.
    await withUnsafeContinuation { continuation in
      file.asyncWriteWithoutTransaction { _ in continuation.resume() }
    }
    if presence.fault == nil {
      try? file.close()
    } else {
      // SQLite would empty its log into the database, of which neither may be what it was.
      _ = Unmanaged.passRetained(file)
    }
    presence.close()
    lock.release()
  }

  /// The state for readiness probes. A store that was opened is available.
  public let monitor: StoreMonitor

  var queue: RequestQueue { writer.queue }
  /// The number of tasks that wait for the end of a record.
  var waiterCount: Int { writer.waiters.count }

  /// The store's numbers.
  public var figures: EmbeddedFigures { writer.figures.withLock { $0 } }
}

extension EmbeddedStore {
  public func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    let requestedAt = BootInstant.now
    let loop = MultiThreadedEventLoopGroup.currentEventLoop
    let base = firstAttempts
    enqueue(
      RecordRequest(request.id, reply: .function(on: loop, codec.decoding(request, on: loop, onReply))) {
        RecordRules.claim($0, request, now: $1, requestedAt: requestedAt, base: base)
      })
  }

  public func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await opened(try await submit(claim.id) { RecordRules.renew($0, claim, now: $1) }, claim)
  }

  public func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    let stored =
      try await codec.keepsAsIs(completion.outcome)
      ? completion : codec.encoded(completion, of: claim.id, claim.key)
    let load = RequestLoad.writing(stored.outcome, turn: claim.turn)
    let reply = try await submit(claim.id, load: load) {
      RecordRules.complete($0, claim, with: stored, now: $1)
    }
    return try await codec.decoded(reply, to: completion, stored: stored, of: claim)
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await opened(try await submit(claim.id) { RecordRules.release($0, claim, release, now: $1) }, claim)
  }

  public func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    let outcome = try await submit(claim.id) { RecordRules.markUnknown($0, claim, because: cause, now: $1) }
    return try await opened(outcome, claim)
  }

  public func isDown(for id: RecordID) async -> Bool { !writer.isServing }

  public func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    guard case .response(let key, let reader) = reading else {
      return try await submit(id, load: .state) { RecordStep(.none, RecordRules.find($0, now: $1)) }
    }
    // Clients may ask for one response as often as they like.
    let load = reader.map { RequestLoad.large(RequestLoad.assumed, turn: $0.turn) } ?? .small
    let standing = try await submit(id, load: load) { RecordStep(.none, RecordRules.find($0, now: $1)) }
    guard standing.encodedOutcome != nil else { return standing }
    return try await codec.decoded(standing, of: id, key, turn: reader?.turn ?? 0)
  }

  public func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    let view: RecordView? = try await submit(id) { entry, now -> RecordStep<RecordView?> in
      guard case .record(let record)? = entry else { return RecordStep(.none, nil) }
      let view = record.view(id, now: now)
      return RecordStep(.none, view.standing == .absent ? nil : view)
    }
    guard var view, view.standing.encodedOutcome != nil else { return view }
    view.standing = try await codec.decoded(view.standing, of: id, nil)
    return view
  }

  /// The reply to an owner, with its outcome decoded.
  private func opened(_ outcome: OwnerOutcome, _ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    guard case .lost = outcome else { return outcome }
    return try await codec.decoded(outcome, of: claim.id, claim.key)
  }

  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await submit(
      id, unreadable: { RecordRules.forgetUnreadable(attempt: $0, fence: fence, now: $1) }
    ) { RecordRules.forget($0, fence: fence, now: $1) }
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    let successor = OwnerToken.ofOperator()
    let stored = try await codec.encoded(resolution, of: id)
    let outcome = try await submit(id) {
      RecordRules.resolve(
        $0, as: stored, amending: amending, attempt: attempt, successor: successor, now: $1)
    }
    return try await codec.decoded(outcome, of: id, nil)
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> EmbeddedWatch { writer.waiters.add(id) }

  private func submit<Reply: Sendable>(
    _ id: RecordID, unreadable: RecordRequest<Reply>.Unreadable? = nil, load: RequestLoad = .small,
    _ rule: @escaping RecordRequest<Reply>.Rule
  ) async throws(StoreError) -> Reply {
    let result = await withUnsafeContinuation { continuation in
      enqueue(RecordRequest(id, reply: .task(continuation), unreadable: unreadable, load: load, rule))
    }
    return try result.get()
  }

  func enqueue(_ request: any EmbeddedRequest) {
    if !writer.queue.add(request) { request.fail(.unavailable("the store is closed")) }
  }
}
