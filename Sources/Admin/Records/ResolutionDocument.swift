import HTTPTypes
import Idempotency
import NIOCore
import Wire

struct ResolutionDocument: OperatorDocument {
  enum CodingKeys: String, CodingKey, CaseIterable {
    case outcome, status, headers, body
    case bodyBase64 = "body_base64"
    case route, amend, attempt, reason
  }

  enum Outcome: String, Decodable {
    case applied
    case notApplied = "not_applied"
  }

  /// The retention if the record's route is not known: a day, like the default of a route.
  private static let day = Milliseconds.seconds(24 * 3600)
  /// RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5.
  private static let bodilessStatuses = [204, 205, 304]

  var outcome: Outcome
  /// The status of the response that later deliveries get. Required for `applied`.
  var status: Int?
  var headers: [String: String]?
  var body: String?
  var bodyBase64: String?
  /// The name of the route that applies where the record names none, or one that is gone.
  var route: String?
  var amend: Bool?
  /// The attempt that the statement is about; `nil` for the last one, whichever it is.
  var attempt: Int?
  var reason: String?

  /// - Parameter remember: The time for which the record is remembered already, which a decision does not shorten.
  func resolution(
    by policy: RoutePolicy?, remembered remember: Milliseconds = 0
  ) throws(AdminError) -> Resolution {
    try require(attempt ?? 1 >= 1, "attempt must be the number of an attempt, which is 1 or more")
    guard outcome == .applied else {
      guard status == nil, headers == nil, body == nil, bodyBase64 == nil else {
        throw AdminError.bad("not_applied leaves no response: take status, headers and body out")
      }
      return .notApplied
    }
    try refuseCookies(policy)
    let (status, body) = (try checkedStatus, try StatedBody.bytes(self.body, base64: bodyBase64))
    guard body.readableBytes == 0 || !Self.bodilessStatuses.contains(status) else {
      throw AdminError.bad("a response of status \(status) has no body: take the body out")
    }
    let response = Idempotency.Outcome.whole(
      RecordedResponse(status: status, fields: try fields(), body: body))
    let recordsStatus = policy?.record == .status
    guard body.readableBytes == 0 || !recordsStatus else {
      throw AdminError.bad("the route keeps no bodies (record: status): take the body out")
    }
    return .applied(
      Completion(
        outcome: recordsStatus ? response.withoutResponse : response,
        retention: policy?.retention ?? Self.day,
        remember: max(policy?.remember ?? Self.day + Self.day, remember)))
  }

  /// The record's route: the one that the record names, or else that is given. Throws where the two differ.
  func route(known: String?, among routes: [RoutePolicy]) throws(AdminError) -> RoutePolicy? {
    let given = try route.map(routes.route(named:))
    guard let own = routes.first(where: { $0.name == known }) else { return given }
    try require(
      given == nil || given?.name == own.name,
      "the record is of route \(own.name), not \(route ?? ""): name that one, or none")
    return own
  }

  func refusal(by record: RecordDocument) -> AdminError {
    var refusal = AdminError(
      record.state == "absent" ? .notFound : .conflict,
      "\(demand(on: record)); this record is \(record.state)")
    refusal.state = record.state
    refusal.attempt = record.attempt
    return refusal
  }

  private func demand(on record: RecordDocument) -> String {
    if let attempt, let last = record.attempt, attempt != last {
      return
        "attempt \(attempt) is not the last one, attempt \(last) is: look at that one before you state its outcome"
    }
    return amend == true
      ? "only what an operator resolved can be amended, and before it is claimed again"
      : "only an unknown outcome can be resolved (amend corrects an earlier resolution)"
  }

  /// A cookie is its first client's: a route replays it only where its owner says so.
  private func refuseCookies(_ policy: RoutePolicy?) throws(AdminError) {
    guard policy?.setCookie != .keep,
      headers?.keys.contains(where: { $0.lowercased() == "set-cookie" }) == true
    else { return }
    throw AdminError.bad(
      policy.map {
        "route \($0.name) keeps no Set-Cookie: take the header out, or set set_cookie: keep there"
      }
        ?? "Set-Cookie is kept only for a route with set_cookie: keep, and the record's is not known: give the "
        + "route, or take the header out")
  }

  private var checkedStatus: Int {
    get throws(AdminError) {
      guard let status else {
        throw AdminError.bad("applied needs the status that later deliveries get: \"status\": 201")
      }
      try require(200...599 ~= status, "status must be that of a final response, 200 to 599")
      return status
    }
  }

  /// The fields that each replay generates anew: the framing, the date, Semel's own and those of one connection.
  private static let generated = FieldNameSet(.date).union(.length).union(.ownResponse).union(.hopByHop)

  /// The lines of the stated fields, but for those that no record keeps: the cache would differ from the record.
  private func fields() throws(AdminError) -> ByteBuffer {
    var out = ByteBuffer()
    for (name, value) in (headers ?? [:]).sorted(by: { $0.key < $1.key }) {
      try Self.line(name, value).copyFields(into: &out)
    }
    return out.fieldLines(without: .momentary)
  }

  private static func line(_ name: String, _ value: String) throws(AdminError) -> MessageHead {
    let head: MessageHead
    do throws(WireError) {
      var made = try MessageHead(method: "GET", target: "/")
      try made.append(name: name, value: value)
      head = made
    } catch {
      throw AdminError.bad(
        error == .badFieldName
          ? "headers has a name that is not one of a header: \(shown(name))"
          : "the value of the header \(name) is not one that a response can have: take its control characters out"
      )
    }
    try require(
      head.names.isDisjoint(with: generated),
      "the header \(name) cannot be stated, since it is made anew for each replay or each connection: take it out"
    )
    return head
  }

  /// A name without the characters that could control a terminal.
  private static func shown(_ name: String) -> String {
    name.isEmpty ? "it is empty" : String(name.map { $0.isASCII && !($0 < " ") && $0 != "\u{7F}" ? $0 : "?" })
  }
}

extension ResolutionDocument {
  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    outcome = try members.decode(Outcome.self, forKey: .outcome)
    status = try members.decodeIfPresent(WholeNumber.self, forKey: .status)?.value
    headers = try members.decodeIfPresent([String: String].self, forKey: .headers)
    body = try members.decodeIfPresent(String.self, forKey: .body)
    bodyBase64 = try members.decodeIfPresent(String.self, forKey: .bodyBase64)
    route = try members.decodeIfPresent(String.self, forKey: .route)
    amend = try members.decodeIfPresent(Bool.self, forKey: .amend)
    attempt = try members.decodeIfPresent(WholeNumber.self, forKey: .attempt)?.value
    reason = try members.decodeIfPresent(String.self, forKey: .reason)
  }
}
