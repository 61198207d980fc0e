import Idempotency
import NIOCore

extension RecordTable {
  /// - Parameter readsResponse: Whether a completed entry has its response. Without it, it must not be written.
  func find(_ id: RecordID, readsResponse: Bool = true) throws(TableError) -> Found {
    self.readsResponse = readsResponse
    statements.select.bind(1, id.digest)
    guard try step(statements.select) else {
      statements.select.reset()
      return .nothing
    }
    defer { statements.select.reset() }
    guard let format = Format(rawValue: statements.select.integer(0)) else {
      let found = statements.select.integer(0)
      throw .unreadable("a record of format \(found), which this version does not read")
    }
    guard let state = State(rawValue: statements.select.integer(1)) else {
      throw .unreadable("a record in state \(statements.select.integer(1))")
    }
    let endsAt = instant(3)
    if state == .fence {
      let fence = StoredEntry.fence(
        attempt: attempts(2), until: endsAt, givenBackBy: statements.select.token(4))
      return Found(entry: fence, response: nil)
    }
    let response = statements.select.isNull(15) ? nil : statements.select.integer(15)
    let record = try record(state, format, endsAt: endsAt, response: response)
    return Found(entry: .record(record), response: response)
  }

  private func record(
    _ state: State, _ format: Format, endsAt: StoreInstant, response: Int64?
  ) throws(TableError) -> StoredRecord {
    guard let owner = statements.select.token(4), let recipe = recipe(statements.select.string(5)),
      let digest = statements.select.digest(6)
    else { throw .unreadable("a record without owner or fingerprint") }
    return StoredRecord(
      state: try recordState(state, format, endsAt: endsAt, response: response),
      fingerprint: Fingerprint(recipe: recipe, digest: digest), owner: owner,
      attempt: attempts(2),
      firstSeen: instant(7), followsUnknown: statements.select.integer(8) & Flag.followsUnknown != 0,
      onlyRejectedSoFar: statements.select.integer(8) & Flag.onlyRejectedSoFar != 0,
      uncountedAttempts: state == .completed || state == .tombstone ? 0 : attempts(13),
      unknownRetention: Milliseconds(statements.select.integer(9)),
      remember: Milliseconds(statements.select.integer(10)), fencedUntil: fence(statements.select.integer(8)),
      attribution: statements.select.isNull(16) ? nil : Attribution(text: statements.select.string(16)))
  }

  func fence(_ flags: Int64) -> StoreInstant? {
    let until = flags >> Flag.fenceShift
    return until > 0 ? StoreInstant(milliseconds: until) : nil
  }

  /// Returns the attempt of a row that cannot be read, and its response.
  func findUnreadable(_ id: RecordID) throws(SQLError) -> (attempt: Int, found: Found) {
    statements.select.bind(1, id.digest)
    defer { statements.select.reset() }
    guard try statements.select.step() else { return (0, .nothing) }
    let response = statements.select.isNull(15) ? nil : statements.select.integer(15)
    return (attempts(2), Found(entry: nil, response: response))
  }

  private func recordState(
    _ state: State, _ format: Format, endsAt: StoreInstant, response: Int64?
  ) throws(TableError) -> StoredRecord.State {
    switch state {
    case .inFlight, .unknown, .completed:
      // As 0 it would be so long ago that the record counts as absent.
      guard !statements.select.isNull(11) else { throw .unreadable("a record without the time of its state") }
    case .released, .tombstone, .fence: break
    }
    switch state {
    case .inFlight: return .inFlight(leaseUntil: instant(11))
    case .unknown: return .unknown(since: instant(11))
    case .released: return .released(until: endsAt)
    case .tombstone, .fence: return .tombstone(until: endsAt)
    case .completed:
      return .completed(
        StoredCompletion(
          outcome: try outcome(format, response), recordedAt: instant(11), expiresAt: instant(12),
          rememberedUntil: endsAt))
    }
  }

  private func outcome(_ format: Format, _ response: Int64?) throws(TableError) -> Outcome {
    let status = Int(statements.select.integer(13))
    guard readsResponse else { return .statusOnly(status: status, location: nil) }
    if let response { return try self.response(response, format, status: status) }
    let location = statements.select.isNull(14) ? nil : statements.select.string(14)
    return switch format {
    case .plain: .statusOnly(status: status, location: location)
    case .encoded: .encoded(EncodedOutcome(status: status, location: location, response: nil))
    }
  }

  private func response(_ number: Int64, _ format: Format, status: Int) throws(TableError) -> Outcome {
    if let response = readResponse(number) { return response }
    statements.selectResponse.bind(1, number)
    let isThere = try step(statements.selectResponse)
    defer { statements.selectResponse.reset() }
    guard isThere else { throw .unreadable("a completed record whose response is gone") }
    let body = statements.selectResponse.buffer(1)
    let response: Outcome
    switch format {
    case .encoded: response = .encoded(EncodedOutcome(status: status, location: nil, response: body))
    case .plain:
      let stored = RecordedResponse(
        stored: status, fields: statements.selectResponse.buffer(0), body: body,
        trailers: statements.selectResponse.buffer(2))
      guard let stored else { throw .unreadable("a completed record whose response is damaged") }
      response = .whole(stored)
    }
    keep(response, number)
    return response
  }

  private func instant(_ column: Int32) -> StoreInstant {
    StoreInstant(milliseconds: statements.select.integer(column))
  }

  /// A number of attempts. A damaged row may have any.
  private func attempts(_ column: Int32) -> Int {
    min(max(Int(statements.select.integer(column)), 0), .max / 2)
  }

  private func recipe(_ text: String) -> Recipe? {
    if let known = recipes[text] { return known }
    guard let recipe = Recipe(text: text) else { return nil }
    // Rarely met again, as the members are one payload's.
    guard recipe.members == nil else { return recipe }
    // Earlier configurations leave recipes behind.
    if recipes.count >= 256 { recipes.removeAll() }
    recipes[text] = recipe
    return recipe
  }

  private func step(_ statement: SQLStatement) throws(TableError) -> Bool {
    do throws(SQLError) {
      return try statement.step()
    } catch {
      var error = error
      error.isOfReading = true
      throw .sql(error)
    }
  }
}
