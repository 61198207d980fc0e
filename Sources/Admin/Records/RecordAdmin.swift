import HTTPTypes
import Idempotency
import Logging
import Platform
import Telemetry

/// The operator's operations on records. They run on the event loop of the store.
public struct RecordAdmin: Sendable {
  /// The number of records on one page of the list, which is enough for a screen.
  static let pageLength = 100
  /// The maximum duration of one page's walk through the store, which may pace it.
  static let pageSpan = Duration.seconds(4)

  /// A change that the store has made of a record.
  public enum Change: Sendable {
    case freed
    case ended(Completion)
  }

  let store: any RecordStore
  private let context: EventLoopContext
  private let invalidations: (any CacheInvalidations)?
  let identityKey: IdentityKey?
  let currentRoutes: @Sendable () async -> [RoutePolicy]
  private let onChange: @Sendable (RecordID, Change) -> Void
  /// The requests that this process has seen lately; `nil` if it keeps none.
  let journal: RequestJournal?
  let digests: LogDigests
  let node: String
  private let lastMismatch: @Sendable (RecordID) -> (at: Int64, differs: String)?
  let onLapse: @Sendable (RecordView) -> Void
  private let auditLogger: Logger
  let trail = AuditTrail()

  /// Creates the operations.
  ///
  /// - Parameters:
  ///   - store: The store of the event loop of `context`, with its cache.
  ///   - invalidations: The way to the caches of other nodes; `nil` if the store belongs to this process alone.
  ///   - identityKey: The key of record IDs, if they are keyed.
  ///   - node: The name of this process among the nodes of its store.
  ///   - lastMismatch: Returns the time and the differing members of the last payload that was refused for a record.
  ///   - onLapse: Called for a record whose owner's lease has lapsed, at each walk that finds it newly lapsed.
  public init(
    store: any RecordStore, context: EventLoopContext, invalidations: (any CacheInvalidations)? = nil,
    identityKey: IdentityKey?, routes: @escaping @Sendable () async -> [RoutePolicy],
    onChange: @escaping @Sendable (RecordID, Change) -> Void = { _, _ in },
    lastMismatch: @escaping @Sendable (RecordID) -> (at: Int64, differs: String)? = { _ in nil },
    onLapse: @escaping @Sendable (RecordView) -> Void = { _ in },
    journal: RequestJournal? = nil, digests: LogDigests = LogDigests(), node: String = "", audit: Logger
  ) {
    self.store = store
    self.context = context
    self.invalidations = invalidations
    self.identityKey = identityKey
    currentRoutes = routes
    self.onChange = onChange
    self.journal = journal
    self.digests = digests
    self.node = node
    self.lastMismatch = lastMismatch
    self.onLapse = onLapse
    auditLogger = audit
  }

  func find(_ query: RecordQuery) async throws(AdminError) -> RecordDocument {
    let identity = try query.identity(among: await currentRoutes(), under: identityKey)
    return try await show(identity.id, by: identity.policy)
  }

  /// - Parameters:
  ///   - policy: The record's route; `nil` if only the record or the journal may know it.
  ///   - trails: The trails of all records, if they have been made.
  func show(
    _ id: RecordID, _ warning: String? = nil, by policy: RoutePolicy? = nil, trails: RecordTrails? = nil
  ) async throws(AdminError) -> RecordDocument {
    let trail = (trails ?? RecordTrails(journal))[id]
    var document: RecordDocument
    switch try await inspected(id) {
    case .success(let view):
      document = Self.document(id, view, trail, by: policy, among: await currentRoutes())
    case .failure(let unreadable):
      document = RecordDocument(unreadable: id)
      document.warning = unreadable.reason
    }
    if let warning { document.warning = warning }
    document.lastMismatch = lastMismatch(id).map {
      RecordDocument.Mismatch(at: Timestamp.text(milliseconds: $0.at), differs: $0.differs)
    }
    return document
  }

  private struct Unreadable: Error { let reason: String }

  private func inspected(_ id: RecordID) async throws(AdminError) -> Result<RecordView?, Unreadable> {
    return try await read { () async throws(StoreError) -> Result<RecordView?, Unreadable> in
      do throws(StoreError) {
        return .success(try await store.inspect(id))
      } catch {
        guard case .unreadable(let reason) = error else { throw error }
        return .failure(Unreadable(reason: reason))
      }
    }
  }

  /// The document of a record, with what the journal knows of it. Its route may be named by the record or its trail.
  static func document(
    _ id: RecordID, _ view: RecordView?, _ trail: RecordTrail?, by policy: RoutePolicy? = nil,
    among routes: [RoutePolicy]
  ) -> RecordDocument {
    let name = view?.attribution?.route ?? trail?.route
    let policy = policy ?? routes.first { $0.name == name }
    var document =
      view.map { RecordDocument($0, by: policy) } ?? RecordDocument(id, .absent, by: policy)
    document.add(trail)
    return document
  }

  func forget(
    _ id: RecordID, by peer: String, reason: String? = nil
  ) async throws(AdminError) -> RecordDocument {
    let (before, danger) = try await condition(of: id)
    var details: Logger.Metadata = ["was": "\(before)"]
    if let reason { details["reason"] = "\(reason)" }
    let fence = Fence.span(outlasting: await currentRoutes().map(\.longestExchange).max() ?? 0)
    let wasThere = try await change("forget", id, peer, details) { () throws(StoreError) in
      try await store.forget(id, fence: fence)
    }
    noteChange(of: id, .freed)
    let warning = Self.joined(danger, await announce(id))
    audit("forget", id, peer, details, warning)
    guard wasThere else { throw AdminError(.notFound, "there is no record \(id.text)") }
    return try await show(id, warning)
  }

  /// The state for the audit log, also of an unreadable record, and the danger of a run of its key now, if known.
  private func condition(of id: RecordID) async throws(AdminError) -> (state: String, danger: String?) {
    guard case .success(let view) = try await inspected(id) else { return (RecordDocument.unreadable, nil) }
    return (RecordDocument(id, view?.standing ?? .absent).state, await danger(of: view))
  }

  private static func result<Reply: Sendable>(
    _ body: () async throws(StoreError) -> Reply
  ) async -> Result<Reply, StoreError> {
    do throws(StoreError) { return .success(try await body()) } catch { return .failure(error) }
  }

  /// The danger of the next delivery's run, where the request may still be at work; `nil` where it is not, or unknown.
  private func danger(of record: RecordView?) async -> String? {
    guard let record else { return nil }
    let name = record.attribution?.route ?? RecordTrails(journal)[record.id]?.route
    let settle = await currentRoutes().first { $0.name == name }?.upstream.settle ?? 0
    switch record.standing {
    case .inFlight(_, let attempt):
      return "attempt \(attempt) was still running: the next delivery runs beside it"
    case .unknown(let age, let attempt) where record.cause == .timeOut && age < settle:
      let left = ((settle - age).count + 999) / 1000
      return
        "the backend may still be at work on attempt \(attempt): Semel would have recorded its response for another "
        + "\(left) s, and does not any more. Make sure that the backend will not run it before the next delivery comes"
    default: return nil
    }
  }

  /// The danger of letting a record's key run again now; `nil` if none is known.
  func dangerOfRunning(_ id: RecordID) async throws(AdminError) -> String? {
    try await condition(of: id).danger
  }

  private static func joined(_ warnings: String?...) -> String? {
    let all = warnings.compactMap(\.self)
    return all.isEmpty ? nil : all.joined(separator: "; ")
  }

  func resolve(
    _ id: RecordID, _ document: ResolutionDocument, by peer: String
  ) async throws(AdminError) -> RecordDocument {
    let resolution = try await decision(id, document)
    let (amends, attempt) = (document.amend ?? false, document.attempt)
    let before = amends ? try await condition(of: id).state : nil
    var details: Logger.Metadata = ["as": "\(document.outcome.rawValue)"]
    if let attempt { details["attempt"] = .stringConvertible(attempt) }
    if let reason = document.reason { details["reason"] = "\(reason)" }
    if let before { details.merge(["amend": "true", "was": "\(before)"]) { _, new in new } }
    if case .applied(let completion) = resolution { details["status"] = "\(completion.outcome.status)" }
    let (outcome, view) = try await change("resolve", id, peer, details) { () async throws(StoreError) in
      // Both are sent at once, in this order: a store without a reply must not keep the change from being tried.
      async let view = try? store.inspect(id)
      async let outcome = Self.result { () throws(StoreError) in
        try await store.resolve(id, as: resolution, amending: amends, attempt: attempt)
      }
      let found = await view
      return (try await outcome.get(), found ?? nil)
    }
    switch outcome {
    case .done:
      var warning = await announce(id)
      switch resolution {
      case .applied(let completion): noteChange(of: id, .ended(completion))
      case .notApplied:
        noteChange(of: id, .freed)
        warning = Self.joined(await danger(of: view), warning)
      }
      audit("resolve", id, peer, details, warning)
      return try await show(id, warning)
    case .replaced: throw AdminError(.conflict, "another record has taken the place of this one")
    case .lost(let standing):
      let record = RecordDocument(id, standing)
      details["refused"] = "the record is \(record.state)"
      if attempt != nil, let last = record.attempt { details["last_attempt"] = .stringConvertible(last) }
      audit("resolve", id, peer, details)
      throw document.refusal(by: record)
    }
  }

  /// The decision, whose response is kept as the record's route has it. What leaves no response needs no route.
  private func decision(
    _ id: RecordID, _ document: ResolutionDocument
  ) async throws(AdminError) -> Resolution {
    guard document.outcome == .applied else { return try document.resolution(by: nil) }
    var record: RecordView?
    if case .success(let view) = try await inspected(id) { record = view }
    let name = record?.attribution?.route ?? RecordTrails(journal)[id]?.route
    let policy = try document.route(known: name, among: await currentRoutes())
    return try document.resolution(by: policy, remembered: record?.remember ?? 0)
  }

  func noteChange(of id: RecordID, _ change: Change) { onChange(id, change) }

  /// Makes other nodes drop the record from their caches. Returns a warning if they cannot be notified.
  func announce(_ id: RecordID) async -> String? {
    do throws(StoreError) {
      try await invalidations?.announce(id)
      return nil
    } catch {
      return
        "other nodes could not be notified of the change, and one that holds this record in its cache may replay it "
        + "until its retention ends; allow +publish to Semel's Redis user and repeat the command, or restart the "
        + "other nodes: \(error.text)"
    }
  }

  /// Makes a change in the store. One that fails is logged, too, since it may have been made all the same.
  func change<Reply: Sendable>(
    _ action: String, _ id: RecordID, _ peer: String, _ details: Logger.Metadata,
    _ body: @escaping @Sendable () async throws(StoreError) -> Reply
  ) async throws(AdminError) -> Reply {
    do throws(AdminError) {
      return try await onLoop(body)
    } catch {
      audit(action, id, peer, details.merging(["failed": "\(error.detail)"]) { own, _ in own })
      throw error
    }
  }

  func audit(
    _ action: String, _ id: RecordID, _ peer: String, _ more: Logger.Metadata, _ warning: String? = nil
  ) {
    var line: Logger.Metadata = ["action": "\(action)", "record": "\(id.text)", "from": "\(peer)"]
    if let warning { line["warning"] = "\(warning)" }
    let details = line.merging(more) { own, _ in own }
    auditLogger.notice("audit", metadata: details)
    trail.add(details)
  }

  /// Reads from the store, which changes nothing, with or without a reply.
  func read<Reply: Sendable>(
    _ body: @escaping @Sendable () async throws(StoreError) -> Reply
  ) async throws(AdminError) -> Reply {
    try await onLoop { () async throws(StoreError) in
      do throws(StoreError) { return try await body() } catch {
        if case .fateUnknown(let reason) = error { throw .unavailable(reason) }
        throw error
      }
    }
  }

  func onLoop<Reply: Sendable>(
    _ body: @escaping @Sendable () async throws(StoreError) -> Reply
  ) async throws(AdminError) -> Reply {
    do {
      return try await context.run(body)
    } catch {
      switch error {
      case .busy(let reason), .unavailable(let reason), .refused(let reason):
        throw AdminError(.serviceUnavailable, reason)
      case .fateUnknown(let reason):
        throw AdminError(
          .badGateway, "whether it was done is not known, look before you repeat it: \(reason)")
      case .unreadable(let reason): throw AdminError(.internalServerError, reason)
      }
    }
  }
}
