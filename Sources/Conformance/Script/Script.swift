/// The exchanges of a case, in their order. Equal scripts run once, and their cases judge the same evidence.
public struct Script: Hashable, Sendable {
  public var steps: [Step]

  public init(_ steps: Step...) { self.steps = steps }

  /// The script that every check begins with.
  public static let firstRun = Script(.deliver(Delivery()))

  /// The number of requests that the script sends, those of `settle` counted once.
  public var requests: Int { steps.map(\.requests).reduce(0, +) }

  /// The number of its requests that may create something.
  public var creating: Int { requests - deliveries.count { $0.method == "GET" || $0.method == "OPTIONS" } }

  public var deliveries: [Delivery] { steps.flatMap(\.deliveries) }
}

/// One step of a script.
public enum Step: Hashable, Sendable {
  /// Sends a delivery on a connection of its own and awaits its response.
  case deliver(Delivery)
  /// Opens a connection for each delivery, sends all but the last byte of each, then releases the last bytes together.
  case together([Delivery])
  /// Sends the first delivery, and the others one after the other while it is in flight.
  case overlapping(Delivery, [Delivery])
  /// Sends a delivery whose response nobody reads to its end.
  case hangUp(Delivery, HangUp)
  /// Repeats a delivery while its response may be about one in flight, for a limited time.
  case settle(Delivery)
  /// Sends all deliveries on one connection before it reads a response.
  case pipelined([Delivery])
  /// Lets the time pass after which a key is forgotten.
  case expiry
  /// Sends the first payload under so many fresh keys, one after the other.
  case flood(Int)
  /// Fetches the document to which the last refusal leads, if the same host serves it.
  case documentation

  /// The moment at which the client goes away.
  public enum HangUp: Hashable, Sendable {
    /// At once after its last byte.
    case afterSending
    /// While it waits for the response.
    case whileWaiting
    /// After the first bytes of the response.
    case duringResponse
  }

  /// The deliveries of the step: each becomes one exchange of the evidence.
  public var deliveries: [Delivery] {
    switch self {
    case .deliver(let delivery), .hangUp(let delivery, _), .settle(let delivery): [delivery]
    case .together(let deliveries), .pipelined(let deliveries): deliveries
    case .overlapping(let first, let others): [first] + others
    case .expiry, .documentation, .flood: []
    }
  }

  var requests: Int {
    if case .flood(let count) = self { count } else { deliveries.count }
  }
}

/// One request of a script, in terms of what it has in common with the others: key, payload and caller.
public struct Delivery: Hashable, Sendable {
  /// The key's field lines.
  public enum Key: Hashable, Sendable {
    case none
    /// A fresh key under this name, quoted or bare as the endpoint takes it.
    case fresh(String)
    /// A text, quoted or bare as the endpoint takes it, in which `{a}` stands for the fresh key of the name `a`, and
    /// `{a:sibling}` for one that differs from it in the last digit only.
    case text(String)
    /// Field values of a line each, in which `{a}` stands for the fresh key of the name `a`.
    case values([String])
  }

  /// The body, and with it the media type.
  public enum Payload: Hashable, Sendable {
    case first
    /// A payload that asks for something else.
    case other
    /// A payload that takes long to execute.
    case slow
    /// A payload that asks for something else than the slow one, and need not take long.
    case otherThanSlow
    /// A payload that the application refuses to run.
    case failing
    /// JSON that breaks off.
    case malformed
    case empty
    case rewritten(Rewriting)
  }

  /// Other spellings of the first payload that mean the same.
  public enum Rewriting: Hashable, Sendable, CaseIterable {
    case spaced, reordered, renumbered
    /// Multipart with another boundary.
    case rebounded
    /// The same bytes under the content coding gzip.
    case compressed
  }

  public enum Caller: Hashable, Sendable { case first, other, none }

  public enum Framing: Hashable, Sendable { case length, chunked, expectation }

  public enum Target: Hashable, Sendable { case same, trailingSlash, query(String) }

  public var key: Key
  public var payload: Payload
  public var caller = Caller.first
  public var framing = Framing.length
  public var target = Target.same
  /// The method, if it is another one than the endpoint's.
  public var method: String?
  /// Parameters behind the media type.
  public var mediaTypeParameters = ""
  /// Further field lines.
  public var fields: [String] = []

  public init(_ key: Key = .fresh("a"), _ payload: Payload = .first) {
    self.key = key
    self.payload = payload
  }

  /// The names of the further field lines.
  public var fieldNames: [String] { fields.map { String($0.prefix { $0 != ":" }) } }

  /// A copy with one member changed.
  public func with<Value>(_ member: WritableKeyPath<Delivery, Value>, _ value: Value) -> Delivery {
    var copy = self
    copy[keyPath: member] = value
    return copy
  }
}

/// One request and what became of it.
public struct Exchange: Equatable, Sendable {
  public enum Outcome: Equatable, Sendable {
    case response(RawResponse)
    /// The client went away on purpose.
    case abandoned
    /// The connection ended, or the response was no HTTP; with the reason.
    case none(String)
    /// The response exceeded a bound of the check (time, size, interim responses); with the reason.
    case endless(String)
  }

  public var request: RawRequest
  public var outcome: Outcome
  /// The times since the script's start at which the last byte was sent, and at which the outcome was there.
  public var sent = Duration.zero
  public var ended = Duration.zero

  public var response: RawResponse? {
    if case .response(let response) = outcome { response } else { nil }
  }
}

/// The number of executions during a script, as far as an oracle knows it.
public enum Executions: Equatable, Sendable {
  case unknown
  case exactly(Int)
  /// The number of ids that were seen in responses; an execution whose response nobody saw is not among them.
  case atLeast(Int)
}

/// All that a case is judged by.
public struct Evidence: Equatable, Sendable {
  /// One for each delivery of the script, in its order.
  public var exchanges: [Exchange] = []
  public var executions = Executions.unknown
  /// Whether two keys got the same result in this run, so that equal results do not show a replay.
  public var keysShareResults = false
  /// The reason for which the oracle gave no reading.
  public var oracleFault: String?
  /// The document to which the last refusal led, and its URL.
  public var documentation = Documentation.notLooked
  /// The expectations of the run's profile.
  public var expected = ExpectedBehaviour.ietf
  /// The text by which each payload differs from the other, and other parts that no refusal may repeat.
  public var confidential: [String] = []

  public enum Documentation: Equatable, Sendable {
    case notLooked
    case noLink
    case elsewhere(String)
    case fetched(String, Exchange.Outcome)
  }

  /// The response to the delivery of this number; `nil` if there was none.
  public subscript(number: Int) -> RawResponse? {
    exchanges.indices.contains(number) ? exchanges[number].response : nil
  }

  public var responses: [RawResponse] { exchanges.compactMap(\.response) }
}

/// The behaviour that a run expects where APIs differ from the draft.
public struct ExpectedBehaviour: Equatable, Sendable {
  public var name: String
  /// The status of a refusal because of another payload.
  public var mismatchStatuses: Set<Int>
  /// Whether a request without a key is refused.
  public var requiresKey: Bool
  /// Whether a duplicate in flight may wait for the first one's result.
  public var allowsWaiting: Bool

  /// Draft-ietf-httpapi-idempotency-key-header-07 to the letter.
  public static let ietf = ExpectedBehaviour(
    name: "ietf", mismatchStatuses: [422], requiresKey: true, allowsWaiting: false)
  /// Stripe's documented behaviour: keys are optional, another payload gets 400.
  public static let stripe = ExpectedBehaviour(
    name: "stripe", mismatchStatuses: [400], requiresKey: false, allowsWaiting: false)
  /// Semel's default: another payload gets 409, and duplicates wait.
  public static let semel = ExpectedBehaviour(
    name: "semel", mismatchStatuses: [409, 422], requiresKey: true, allowsWaiting: true)

  public static let all = [ietf, stripe, semel]
}

/// The state of an oracle at one moment.
public enum OracleReading: Equatable, Sendable {
  case count(Int)
  case ids(Set<String>)
  /// The oracle did not respond as it should, with the reason.
  case failed(String)
}

extension OracleSettings {
  /// The place that is read; `nil` for ids in responses.
  public var endpoint: Endpoint? {
    switch self {
    case .count(let endpoint, _), .list(let endpoint, _): endpoint
    case .responses: nil
    }
  }

  /// The reading in a response of the oracle.
  public func reading(of outcome: Exchange.Outcome) -> OracleReading {
    if case .endless(let reason) = outcome { return .failed(reason) }
    guard case .response(let response) = outcome else { return .failed("no response") }
    guard response.isSuccess else { return .failed("status \(response.status)") }
    guard let json = response.json else { return .failed(Self.text(ofNoJSON: response.body)) }
    switch self {
    case .count(_, let pointer):
      guard case .number(let text)? = json.value(at: pointer), let count = Int(text) else {
        return .failed("no whole number at \(pointer)")
      }
      return .count(count)
    case .list(_, let id):
      guard let elements = json.onlyList else { return .failed("no list") }
      let ids = elements.compactMap { $0.value(at: id)?.scalarText }
      return ids.count == elements.count ? .ids(Set(ids)) : .failed("an element without an id at \(id)")
    case .responses:
      return .failed("no oracle of its own")
    }
  }

  private static func text(ofNoJSON body: [UInt8]) -> String {
    guard !body.isEmpty else { return "no JSON: the body is empty" }
    let index = JSONReader.fault(in: body) ?? body.count
    guard index < body.count else { return "no JSON: it ends within a value, after \(body.count) bytes" }
    // Bytes that cannot be printed must not steer the reader's terminal.
    let shown = body[index...].prefix(maxShown).map { 0x20..<0x7F ~= $0 ? $0 : UInt8(ascii: "?") }
    return "no JSON: at byte \(index) it reads \(String(decoding: shown, as: UTF8.self))"
  }

  private static let maxShown = 24
}

extension OracleReading {
  var fault: String? {
    if case .failed(let reason) = self { reason } else { nil }
  }
}

extension OracleSettings? {
  /// The number of executions between two readings.
  public func executions(
    before: OracleReading?, after: OracleReading?, in evidence: Evidence
  ) -> Executions {
    switch (self, before, after) {
    case (.responses(let id), _, _):
      let seen = evidence.responses.filter(\.isSuccess).map { $0.json?.value(at: id)?.scalarText }
      return seen.contains(nil) ? .unknown : .atLeast(Set(seen).count)
    case (_, .count(let before), .count(let after)): return .exactly(after - before)
    case (_, .ids(let before), .ids(let after)): return .exactly(after.subtracting(before).count)
    default: return .unknown
    }
  }
}

extension JSONValue {
  /// The document itself if it is a list, or else the only list among its members.
  fileprivate var onlyList: [JSONValue]? {
    switch self {
    case .array(let elements):
      return elements
    case .object(let members):
      let lists = members.compactMap { member -> [JSONValue]? in
        if case .array(let elements) = member.value { elements } else { nil }
      }
      return lists.count == 1 ? lists[0] : nil
    default:
      return nil
    }
  }
}
