import NIOCore
import Wire

/// The fields of responses that are left out of records, and so of replays, beyond those of one moment.
public struct ReplayPolicy: Hashable, Sendable {
  /// Further fields that belong to one exchange, such as `X-Request-Id`.
  public var drop = FieldNameList()
  /// Fields of `FieldNameList.rateLimits` that are recorded nevertheless.
  public var keep = FieldNameList()

  public init() {}

  /// The fields that are left out.
  ///
  /// - Parameter stated: Further fields that replays state anew.
  func omission(stated: [String]) -> FieldOmission {
    FieldOmission(FieldNameList(FieldNameList.rateLimits.names + drop.names + stated), except: keep)
  }
}

extension Route {
  /// The `Location` that a record without its response keeps; `nil` if there is none, or the route leaves it out.
  public func recordedLocation(_ head: MessageHead?) -> String? {
    unrecorded.known.contains(.location) ? nil : head?.string(.location)
  }
}

extension RoutePolicy {
  /// An outcome as the route records it.
  func recorded(_ outcome: Outcome) -> Outcome { record == .status ? outcome.withoutResponse : outcome }
}

/// The query by which Semel learns from the backend what became of a request whose response was lost.
public struct ReconcilePolicy: Hashable, Sendable {
  /// A field of the query, with credentials of Semel's own.
  public struct Field: Hashable, Sendable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The part of `path` that stands for the request id.
  public static let placeholder = "{request_id}"

  /// The path and query of a GET, with the placeholder.
  public var path: String
  public var headers: [Field] = []
  /// The statuses that state that the request was executed. The body is then its outcome.
  public var applied: [Int] = [200]
  /// The response that states that it was not; `nil` if none does.
  public var absent: Absence?
  /// The status under which the outcome is recorded; `nil` for that of the query's response.
  public var status: Int?

  public init(path: String) { self.path = path }

  /// The target of the query about a record.
  public func target(about id: RecordID) -> String { path.replacing(Self.placeholder, with: id.text) }

  /// The verdict of the query's response; `nil` for no complete response.
  ///
  /// - Parameters:
  ///   - method: The method of the request that the query is about.
  ///   - cors: The route's treatment of pages of other origins; `nil` for none.
  public func verdict(
    of response: ProbeResponse?, method: MessageHead.Method, cors: CORSPolicy? = nil
  ) -> ProbeVerdict {
    guard let response else { return .none }
    if let absent, absent.matches(response) { return .absent }
    return applied.contains(response.status) ? .applied(outcome(of: response, method, cors)) : .none
  }

  private func outcome(
    of response: ProbeResponse, _ method: MessageHead.Method, _ cors: CORSPolicy?
  ) -> Outcome {
    let status = status ?? response.status
    guard let body = response.body else { return .statusOnly(status: status, location: nil) }
    // Such responses have no content (RFC 9110, section 6.4.1).
    let hasContent = method != .head && status != 204 && status != 304
    var fields = ByteBuffer()
    if hasContent, let type = response.contentType {
      let line = ByteBuffer(string: "Content-Type: \(type)\r\n")
      // The probe's client lets control characters through, with which the record would be unreadable.
      if line.isFieldLines { fields.writeImmutableBuffer(line) }
    }
    // Semel composes this response: the listed origins may read it. A replay names the one that asks.
    if let cors, let origin = cors.origins.first {
      OriginAllowance(origin: origin, withCredentials: cors.credentials).write(into: &fields)
    }
    return .whole(RecordedResponse(status: status, fields: fields, body: hasContent ? body : ByteBuffer()))
  }
}

/// The statement of a backend on a request whose response was lost.
public enum ProbeVerdict: Sendable, Equatable {
  /// It was executed, with this outcome.
  case applied(Outcome)
  /// It was not executed.
  case absent
  /// The backend states neither, or did not respond: the outcome stays unknown.
  case none

  public var isApplied: Bool {
    if case .applied = self { true } else { false }
  }
}

extension ReconcilePolicy {
  /// The response by which the backend states that a request was not executed: a status, and marks that only the
  /// handler of the query makes. A status alone may come from a gateway, or from a path that does not exist.
  public struct Absence: Hashable, Sendable {
    /// A member of a JSON body.
    public struct Member: Hashable, Sendable {
      public var pointer: String
      /// The text of a string, or a number or literal as it is written.
      public var value: String

      public init(pointer: String, value: String) {
        self.pointer = pointer
        self.value = value
      }
    }

    public var statuses = [404]
    /// The fields that the response must have with these values.
    public var headers: [Field] = []
    /// The members that its body must have with these values.
    public var members: [Member] = []

    public init() {}

    /// Whether there is a mark to know the handler by.
    public var hasMark: Bool { !headers.isEmpty || !members.isEmpty }

    /// Whether a response has the status and all marks, and is no cache's: that may be about an earlier attempt.
    func matches(_ response: ProbeResponse) -> Bool {
      hasMark && statuses.contains(response.status) && !response.isOfCache
        && headers.allSatisfy { response.has($0) } && has(members, in: response.body)
    }

    private func has(_ members: [Member], in body: ByteBuffer?) -> Bool {
      guard !members.isEmpty else { return true }
      return body?.withUnsafeReadableBytes { bytes in
        guard let document = try? JSONParser.parse(bytes), !document.hasDuplicates else { return false }
        return members.allSatisfy { member in
          JSONPointer(member.pointer).map { document.scalar(at: $0, equals: member.value) } ?? false
        }
      } ?? false
    }
  }
}

extension ProbeResponse {
  /// Whether the field has this value, and on none of its lines another.
  fileprivate func has(_ field: ReconcilePolicy.Field) -> Bool {
    guard let head else { return false }
    let values = values(of: field.name.lowercased(), in: head)
    return !values.isEmpty && values.allSatisfy { $0 == field.value }
  }

  /// Whether a cache says that it had the response already.
  fileprivate var isOfCache: Bool {
    guard let head else { return false }
    return values(of: "age", in: head).contains { $0 != "0" }
      || ["x-cache", "x-cache-status", "cf-cache-status"].contains { name in
        values(of: name, in: head).contains { $0.lowercased().hasPrefix("hit") }
      }
  }

  private func values(of name: String, in head: MessageHead) -> [String] {
    head.fields(named: name).map { head.string($0.valueRange) }
  }
}

/// The retries that Semel makes on a client's behalf on one route.
public struct RetryPolicy: Hashable, Sendable {
  /// The maximum number of retries for one delivery.
  public var max = 2
  /// The upper bound of the first pause; it doubles for each further one.
  public var backoff: Milliseconds = 100
  /// The maximum of that bound.
  public var maxBackoff: Milliseconds = 2000
  /// The maximum share of the upstream's requests in flight that are retries, in percent.
  public var budget = 20
  /// The statuses of class `retry` after which Semel makes the next attempt.
  public var on: [Int] = [408, 425, 429, 503]

  public init() {}
}

/// The end of an attempt that leaves its record free to claim.
public enum RetriableEnd: Sendable, Equatable {
  /// A complete response of class `retry`.
  case response(status: Int, retryAfter: RetryAfter)
  /// The request was certainly not executed.
  case notExecuted
}

/// Semel's decision on a next attempt of its own.
public enum RetryDecision: Sendable, Equatable {
  /// The attempt's end is none that the route retries.
  case pass
  /// The next attempt follows after this pause.
  case wait(Milliseconds)
  /// The route retries such an end, but not now.
  case stop(RetryStop)
}

/// The reason for which no further retry is made.
public enum RetryStop: Int, CaseIterable, Sendable {
  /// The maximum number of retries or of attempts is reached.
  case exhausted
  /// The next attempt would begin after `wait_timeout`, or at an unknown time.
  case late
  /// The upstream's retry budget is spent.
  case budget
}

extension RetryPolicy {
  /// Decides on the retry after an attempt: exponential backoff with full jitter, and no earlier than the backend
  /// wants.
  ///
  /// - Parameters:
  ///   - made: The number of retries that were made for the delivery before.
  ///   - unsent: The number of those that followed an attempt of which nothing was sent. They do not count towards
  ///     `max`: the time bounds them.
  ///   - elapsed: The time since the first attempt of the delivery began.
  ///   - limit: The time from that moment in which a retry may begin.
  public func decision(
    after end: RetriableEnd, made: Int, unsent: Int = 0, elapsed: Milliseconds,
    limit: Milliseconds,
    using random: inout some RandomNumberGenerator
  ) -> RetryDecision {
    invariant(unsent <= made, "more retries follow unsent attempts than were made")
    var min: Milliseconds = 0
    if case .response(let status, let retryAfter) = end {
      guard on.contains(status) else { return .pass }
      switch retryAfter {
      case .none: break
      case .span(let span): min = span
      case .unreadable: return .stop(.late)
      }
    }
    guard end == .notExecuted || made - unsent < max else { return .stop(.exhausted) }
    let pause = Swift.max(min, Milliseconds(Int64.random(in: 0...bound(after: made).count, using: &random)))
    return elapsed + pause <= limit ? .wait(pause) : .stop(.late)
  }

  /// The upper bound of the pause after so many retries.
  private func bound(after made: Int) -> Milliseconds {
    // Thirty doublings exceed every maximum.
    let (bound, overflow) = backoff.count.multipliedReportingOverflow(by: 1 << Int64(Swift.min(made, 30)))
    return overflow ? maxBackoff : Swift.min(maxBackoff, Milliseconds(bound))
  }
}

/// The retry budget of one upstream: of its requests in flight, only a share may be retries, so that an outage is not
/// made worse by them. The rule is that of Envoy's retry budget.
///
/// Requests of routes without retries are not counted, which makes the budget smaller, never larger.
public struct RetryBudget: Sendable, Equatable {
  /// The number of retries that may always be made at once: a share of few requests would allow none.
  public static let min = 3

  /// The number of requests that have been claimed and have not ended, those that wait for a retry included.
  public private(set) var inFlight = 0
  /// The number of them that wait for a retry, or have begun one.
  public private(set) var retrying = 0

  public init() {}

  public mutating func began() { inFlight += 1 }

  /// Takes a place for the retries of one request; false if the budget is spent.
  public mutating func beginRetrying(percent: Int) -> Bool {
    guard retrying < max(Self.min, inFlight * percent / 100) else { return false }
    retrying += 1
    invariant(retrying <= inFlight, "more requests are retried than are in flight")
    return true
  }

  public mutating func ended(isRetrying: Bool) {
    invariant(inFlight > 0, "a request ended that never began")
    inFlight -= 1
    if isRetrying { retrying -= 1 }
    invariant(retrying >= 0 && retrying <= inFlight, "a place for retries is given back twice")
  }
}
