import Idempotency
import NIOCore
import Platform

/// A store whose replies a test gives. Confined to its loop.
final class ScriptedStore: RecordStore, @unchecked Sendable {
  /// A watch whose record may have changed whenever it is looked at.
  struct Watch: RecordWatch {
    let store: ScriptedStore

    func changed(within span: Milliseconds) async { store.waits.append(span) }
    func wake() {}
    func cancel() {}
  }

  /// A command of an owner that waits for its reply.
  typealias Waiting = UnsafeContinuation<Result<OwnerOutcome, StoreError>, Never>

  static let away = StoreError.unavailable("the test has no store")

  private let loop: any EventLoop
  var onClaim: (ClaimRequest) -> ClaimReply = { _ in .failure(ScriptedStore.away) }
  /// The outcome that is known without a command; `nil` if none is.
  var onLookup: () -> ClaimOutcome? = { nil }
  var onComplete: (Claim, Completion) -> Result<CompletionReply, StoreError> = { _, _ in
    .success(CompletionReply(outcome: .done, record: nil))
  }
  /// The error of marks; `nil` if the store takes them.
  var markFailure: StoreError?
  /// The error of releases; `nil` if the store takes them.
  var releaseFailure: StoreError?
  /// The reply to marks.
  var markOutcome = OwnerOutcome.done
  /// The reply to a look at a record.
  var onFind: () -> Result<Standing, StoreError> = { .failure(ScriptedStore.away) }
  /// Called when a record is watched; the error is that of the watch.
  var onWatch: () -> StoreError? = { nil }
  private(set) var claims: [ClaimRequest] = []
  private(set) var completions: [Completion] = []
  /// Whether completions wait for their replies.
  var holdsCompletions = false
  private(set) var heldCompletions: [UnsafeContinuation<Result<CompletionReply, StoreError>, Never>] = []
  private(set) var releases: [Release] = []
  private(set) var markCount = 0
  private(set) var watchCount = 0
  /// The time that each wait for a change was given.
  private(set) var waits: [Milliseconds] = []
  private(set) var renewals: [Waiting] = []
  /// Whether marks wait for their replies.
  var holdsMarks = false
  private(set) var marks: [Waiting] = []

  init(loop: any EventLoop) { self.loop = loop }

  func knownOutcome(of id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome? { onLookup() }

  func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    claims.append(request)
    loop.execute { [self] in onReply(onClaim(request)) }
  }

  func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await withUnsafeContinuation { renewals.append($0) }.get()
  }

  func complete(_ claim: Claim, with completion: Completion) async throws(StoreError) -> CompletionReply {
    completions.append(completion)
    if holdsCompletions { return try await withUnsafeContinuation { heldCompletions.append($0) }.get() }
    return try onComplete(claim, completion).get()
  }

  func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    releases.append(release)
    if let releaseFailure { throw releaseFailure }
    return .done
  }

  func markUnknown(_ claim: Claim, because cause: LossCause?) async throws(StoreError) -> OwnerOutcome {
    markCount += 1
    if let markFailure { throw markFailure }
    guard holdsMarks else { return markOutcome }
    return try await withUnsafeContinuation { marks.append($0) }.get()
  }

  func watch(_ id: RecordID) async throws(StoreError) -> Watch {
    watchCount += 1
    if let error = onWatch() { throw error }
    return Watch(store: self)
  }

  func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    try onFind().get()
  }

  func isDown(for id: RecordID) async -> Bool { true }

  func list(after cursor: String?) async throws(StoreError) -> OpenRecords { throw Self.away }

  func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? { throw Self.away }

  func search(_ filter: RecordFilter, after cursor: String?) async throws(StoreError) -> FoundRecords {
    throw Self.away
  }

  func isCursor(_ text: String) -> Bool { false }

  func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool { throw Self.away }

  func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    throw Self.away
  }
}

extension ClaimRequest {
  /// The claim by which a store grants it, for the first time.
  var granted: Claim { granted(over: nil) }

  /// The same over the fence of a forgotten record, or for a later attempt.
  func granted(over fence: Fence?, attempt: Int = 1, followsUnknown: Bool = false) -> Claim {
    Claim(
      id: id, owner: owner, fingerprint: fingerprint, attempt: attempt,
      firstSeen: StoreInstant(milliseconds: 1000), followsUnknown: followsUnknown,
      onlyRejectedSoFar: attempt == 1, lease: lease, unknownRetention: unknownRetention, remember: remember,
      fence: fence, requestedAt: .now)
  }
}
