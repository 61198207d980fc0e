import Idempotency
import NIOCore
import Platform
import Synchronization
import Wire

/// The codec in the commands and replies of a store. What is large is encoded beside the caller's event loop.
extension OutcomeCodec {
  /// The size above which an outcome is encoded beside the event loop, in bytes. Sealing so many takes about 0.1 ms.
  private static let maxBytesOnLoop = 128 << 10
  /// The same for an outcome that is compressed, in about 0.07 ms.
  private static let maxCompressedOnLoop = 32 << 10
  /// The same for the plain length of an outcome that is decompressed, in about 0.05 ms.
  private static let maxExpandedOnLoop = 64 << 10

  private func isSmall(_ outcome: Outcome) -> Bool {
    outcome.size <= (compresses ? Self.maxCompressedOnLoop : Self.maxBytesOnLoop)
  }

  private static func isSmall(_ outcome: EncodedOutcome) -> Bool {
    guard let response = outcome.response else { return true }
    return response.readableBytes <= maxBytesOnLoop
      && Envelope.plainLength(of: response) <= maxExpandedOnLoop
  }

  private func opened(
    _ record: CompletedRecord, _ outcome: EncodedOutcome, _ id: RecordID, _ key: IdempotencyKey?
  ) throws(StoreError) -> CompletedRecord {
    record.with(try decoded(outcome, of: id, key), storedBytes: outcome.response?.readableBytes)
  }

  private func beside<Output: Sendable>(
    _ work: @escaping @Sendable () throws(StoreError) -> Output
  ) async throws(StoreError) -> Output {
    let result = await withUnsafeContinuation { continuation in
      pool.submit { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
  }

  func encoded(
    _ completion: Completion, of id: RecordID, _ key: IdempotencyKey?
  ) async throws(StoreError) -> Completion {
    let outcome = completion.outcome
    guard !keepsAsIs(outcome) else { return completion }
    var completion = completion
    if isSmall(outcome) {
      completion.outcome = try encoded(outcome, of: id, key)
    } else {
      completion.outcome = try await beside { [self] () throws(StoreError) in
        try encoded(outcome, of: id, key)
      }
    }
    return completion
  }

  func encoded(_ resolution: Resolution, of id: RecordID) async throws(StoreError) -> Resolution {
    guard case .applied(let completion) = resolution else { return resolution }
    return .applied(try await encoded(completion, of: id, nil))
  }

  private static func expandedBytes(of outcome: EncodedOutcome) -> Int {
    outcome.response.map { max($0.readableBytes, Envelope.plainLength(of: $0)) } ?? 0
  }

  /// - Parameter turn: The caller whose turn a large one takes.
  func decoded(
    _ standing: Standing, of id: RecordID, _ key: IdempotencyKey?, turn: Int = 0
  ) async throws(StoreError) -> Standing {
    guard case .completed(let record) = standing, case .encoded(let outcome) = record.outcome else {
      return standing
    }
    if Self.isSmall(outcome) { return .completed(try opened(record, outcome, id, key)) }
    let place = await withUnsafeContinuation { waiter in
      expansions.enter(caller: turn, bytes: Self.expandedBytes(of: outcome)) { waiter.resume(returning: $0) }
    }
    defer { expansions.end(place) }
    return .completed(
      try await beside { [self] () throws(StoreError) in try opened(record, outcome, id, key) })
  }

  func decoded(
    _ outcome: OwnerOutcome, of id: RecordID, _ key: IdempotencyKey?
  ) async throws(StoreError) -> OwnerOutcome {
    guard case .lost(let standing) = outcome else { return outcome }
    return .lost(try await decoded(standing, of: id, key))
  }

  func decoded(
    _ reply: CompletionReply, to completion: Completion, stored: Completion, of claim: Claim
  ) async throws(StoreError) -> CompletionReply {
    var reply = reply
    reply.outcome = try await decoded(reply.outcome, of: claim.id, claim.key)
    if let record = reply.record, case .encoded(let outcome) = record.outcome {
      if case .encoded(let own) = stored.outcome, own === outcome {
        reply.record = record.with(completion.outcome)
      } else {
        // The record is complete, readable or not.
        reply.record = try? await decoded(.completed(record), of: claim.id, claim.key).completedRecord
      }
    }
    return reply
  }
}

extension OutcomeCodec {
  /// The outcome of a claim decoded; `nil` if it is too large for an event loop.
  func decodedOnLoop(_ outcome: ClaimOutcome, to request: ClaimRequest) throws(StoreError) -> ClaimOutcome? {
    if let encoded = outcome.encodedOutcome, !Self.isSmall(encoded) { return nil }
    return try opened(outcome, to: request)
  }

  private func opened(_ outcome: ClaimOutcome, to request: ClaimRequest) -> ClaimReply {
    ClaimReply { () throws(StoreError) in try opened(outcome, to: request) }
  }

  private func opened(_ outcome: ClaimOutcome, to request: ClaimRequest) throws(StoreError) -> ClaimOutcome {
    guard case .taken(.completed(let record)) = outcome, case .encoded(let encoded) = record.outcome else {
      return outcome
    }
    return .taken(.completed(try opened(record, encoded, request.id, request.key)))
  }

  func decoded(
    _ outcome: ClaimOutcome, to request: ClaimRequest
  ) async throws(StoreError) -> ClaimOutcome {
    guard case .taken(let standing) = outcome else { return outcome }
    return .taken(
      try await decoded(standing, of: request.id, request.key, turn: request.reader?.turn ?? 0))
  }

  /// The receiver of a claim's reply with its outcome decoded, called on the given event loop or thread.
  func decoding(
    _ request: ClaimRequest, on loop: (any EventLoop)?,
    _ onReply: @escaping @Sendable (ClaimReply) -> Void
  ) -> @Sendable (ClaimReply) -> Void {
    let turn = request.reader?.turn ?? 0
    return { [self] reply in
      guard case .success(let outcome) = reply, let encoded = outcome.encodedOutcome else {
        return onReply(reply)
      }
      if Self.isSmall(encoded) { return onReply(opened(outcome, to: request)) }
      expansions.enter(caller: turn, bytes: Self.expandedBytes(of: encoded)) { [self] place in
        pool.submit { [self] in
          let reply: ClaimReply = opened(outcome, to: request)
          let finish = { @Sendable [self] in
            onReply(reply)
            expansions.end(place)
          }
          if let loop { loop.execute(finish) } else { finish() }
        }
      }
    }
  }
}

extension Result where Success: Sendable {
  /// The result of a call.
  init(awaiting call: () async throws(Failure) -> Success) async {
    do throws(Failure) { self = .success(try await call()) } catch { self = .failure(error) }
  }
}

extension Standing {
  fileprivate var completedRecord: CompletedRecord? {
    if case .completed(let record) = self { record } else { nil }
  }
}

/// The turns of the large responses that are decoded beside the event loops. What takes few bytes in the store may be
/// large, and is in no count of memory until the loop of its client has it.
final class ExpansionTurns: Sendable {
  private static let budget = 8 << 20

  private struct State {
    var queue = TurnQueue(budget: ExpansionTurns.budget)
    var waiting: [TurnQueue.Place: @Sendable () -> Void] = [:]

    mutating func takeNext() -> (@Sendable () -> Void)? {
      guard let place = queue.takeNext() else { return nil }
      guard let begin = waiting.removeValue(forKey: place) else {
        invariantBroken("the turn of a response comes twice")
      }
      return begin
    }
  }

  private let state = Mutex(State())

  /// Calls `begin` when it is the response's turn, at once or on the thread that ends another one's. `end` must follow.
  func enter(caller: Int, bytes: Int, _ begin: @escaping @Sendable (TurnQueue.Place) -> Void) {
    state.withLock { state in
      let place = state.queue.enter(caller: caller, bytes: bytes)
      state.waiting[place] = { begin(place) }
    }
    beginNext()
  }

  func end(_ place: TurnQueue.Place) {
    state.withLock { $0.queue.end(place) }
    beginNext()
  }

  private func beginNext() {
    while let begin = state.withLock({ $0.takeNext() }) { begin() }
  }
}

extension RecordedResponse {
  var isCompressible: Bool {
    var isCompressible = true
    fields.eachFieldLine { name, value in
      switch name {
      case "content-encoding": if value.lowercased() != "identity" { isCompressible = false }
      case "content-type": if Self.isCompressed(type: value) { isCompressible = false }
      default: break
      }
    }
    return isCompressible
  }

  private static func isCompressed(type text: String) -> Bool {
    let type = text.prefix { $0 != ";" && $0 != " " && $0 != "\t" }.lowercased()
    guard let slash = type.firstIndex(of: "/") else { return false }
    switch type[..<slash] {
    case "image": return !type.hasSuffix("+xml") && type != "image/bmp"
    case "video": return true
    case "audio": return type != "audio/wav"
    default:
      return compressedTypes.contains(type) || type.hasSuffix("+zip") || type.hasSuffix("+gzip")
        || type.hasPrefix("application/vnd.openxmlformats-")
        || type.hasPrefix("application/vnd.oasis.opendocument.")
    }
  }

  private static let compressedTypes: Set<String> = [
    "application/gzip", "application/java-archive", "application/vnd.rar", "application/x-7z-compressed",
    "application/x-bzip2", "application/x-gzip", "application/x-rar-compressed", "application/x-xz",
    "application/zip", "application/zstd", "font/woff", "font/woff2",
  ]
}
