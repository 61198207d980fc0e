import Idempotency
import NIOCore
import Platform

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
