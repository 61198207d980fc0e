import Idempotency
import NIOCore
import Telemetry
import Wire

/// Requests for the paths at which Semel itself responds: its policy, and the outcomes of earlier requests.
extension RequestRunner {
  /// The subject of a request for a reserved path; `nil` if the path is left to the routes.
  @inline(never)
  func reserved(
    _ path: ReservedPath, _ target: RequestTarget, host: RequestHost?
  ) throws(Problem) -> Subject? {
    switch path {
    case .policy:
      return configuration.policy.map {
        .published($0.response(to: head, host: host?.name ?? ByteBuffer()))
      }
    case .outcome:
      if configuration.routes.listsOrigins {
        noteOrigin(
          by: OutcomeInquiry.route(
            head: head, query: target.query, host: host, routes: configuration.routes))
      }
      let places = configuration.routes.tokenPlaces
      guard let peer = identifiedPeer(tokensAt: places) else { return .unverified(at: places) }
      let inquiry = try OutcomeInquiry(
        head: head, query: target.query, host: host, peer: peer,
        routes: configuration.routes, under: environment.identityKey)
      noteInquiry(inquiry)
      return .inquiry(inquiry)
    }
  }

  /// Responds to an inquiry, at once or when the request that it is about has ended.
  @inline(never)
  func run(_ inquiry: OutcomeInquiry) async throws(Problem) {
    delivery.caller = inquiry.caller
    try enterQuota(of: inquiry.caller, by: inquiry.route)
    do throws(Problem) {
      try await respond(to: inquiry)
    } catch {
      // `storeUnavailable` states that the request was not executed. Nobody knows that of the earlier one.
      throw error.code == .storeUnavailable ? .recordUnavailable() : error
    }
  }

  private func respond(to inquiry: OutcomeInquiry) async throws(Problem) {
    var wait: DuplicateWait<Store>?
    defer { wait?.end() }
    var mayWait = true
    while true {
      let standing = try await standing(of: inquiry)
      switch inquiry.action(on: standing, mayWait: mayWait) {
      case .report(let status):
        let response = OutcomeInquiry.response(standing, status: status) {
          Timestamp.text(milliseconds: $0.milliseconds)
        }
        return respond(with: response)
      case .replay(let record):
        return replay(record.uncacheable, from: wait == nil ? .store : .wait)
      case .wait(let leaseLeft):
        if let wait {
          mayWait = await wait.changed(leaseLeft: leaseLeft)
        } else {
          // The next look finds an end that came before the subscription.
          wait = try await DuplicateWait(for: inquiry, of: self)
          mayWait = wait != nil
        }
        guard delivery.isConnected else { return }
      }
    }
  }

  /// The record's state, with the response only where it is wanted: that may be a million times as large.
  private func standing(of inquiry: OutcomeInquiry) async throws(Problem) -> Standing {
    let reading: RecordReading =
      inquiry.wantsResponse ? .response(opening: inquiry.key, for: delivery) : .state
    do throws(StoreError) {
      return try await worker.store.find(inquiry.id, reading: reading)
    } catch {
      switch error {
      case .unreadable: throw .storeUnreadable()
      case .busy: throw .overloaded(.busy)
      case .unavailable, .refused, .fateUnknown: throw .storeUnavailable()
      }
    }
  }

  /// Responds with a document of Semel's own.
  @inline(never)
  func respond(with response: OwnResponse) {
    delivery.logEntry.status = response.status
    delivery.logEntry.outcome = .reported
    delivery.respond(with: ClientResponse(response, to: head.method))
  }
}

extension CompletedRecord {
  /// The record with a response that no cache keeps: the URL of an inquiry does not name the caller, so that a cache
  /// would hand one caller's response to another. The length is left out: a recorded response to HEAD states that of a
  /// body which is not here.
  fileprivate var uncacheable: CompletedRecord {
    guard case .whole(let response) = outcome else { return self }
    // The new field comes behind the stamp of an age, and before that of a trace, which must remain the last line.
    var fields = ByteBuffer()
    let (age, own) = AgeStamp.take(from: response)
    AgeStamp.put(age, into: &fields)
    fields.writeLiteral("Cache-Control: no-store\r\n")
    let dropped = FieldNameSet(.cacheControl).union(.length)
    fields.writeImmutableBuffer(own.fields.fieldLines(without: dropped))
    return CompletedRecord(
      outcome: .whole(
        RecordedResponse(
          status: response.status, fields: fields, body: response.body, trailers: response.trailers)),
      recordedAt: recordedAt, expiresAt: expiresAt, remaining: remaining, attempt: attempt)
  }
}
