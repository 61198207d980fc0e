import Foundation
import HTTPTypes
import Idempotency
import NIOCore
import Wire

/// The request of a statement, as far as its operator describes it: fields that enter no fingerprint may be missing.
struct StatedRequest {
  /// The fields that are stated, and those that every delivery of the record has.
  private let head: MessageHead
  private let target: RequestTarget
  /// The host by which its route is chosen.
  private let host: ByteBuffer
  private let body: ByteBuffer

  init(_ statement: RecordStatement, of identity: RecordIdentity) throws(AdminError) {
    let payload = statement.payload
    guard let path = statement.record.path ?? identity.policy.match.path?.literal else {
      throw AdminError.bad("the route takes several paths: give the request's path")
    }
    guard payload.query?.hasPrefix("?") != true else {
      throw AdminError.bad("the query begins with its question mark: give it without, as in a=1&b=2")
    }
    let stated: RequestHost?
    do {
      var head = try MessageHead(
        method: identity.method, target: path + (payload.query.map { "?" + $0 } ?? ""))
      for (name, value) in (payload.headers ?? [:]).sorted(by: { $0.key < $1.key }) {
        try head.append(name: name, value: value)
      }
      let given = head
      for (name, value) in statement.record.fields(of: identity.policy)
      where given.fields(named: name).isEmpty {
        try head.append(name: name, value: value)
      }
      self.head = head
      target = try RequestTarget(head, reading: identity.policy.pathReading)
      stated = try RequestHost(of: head, target: target)
    } catch {
      throw AdminError.bad("the path, the query or a header is not one that a request can have")
    }
    guard stated == nil || Self.name(stated) == Self.name(identity.host) else {
      throw AdminError.bad("the payload has another host than the record: give both alike")
    }
    host = (stated ?? identity.host)?.name ?? ByteBuffer()
    body = try StatedBody.bytes(payload.body, base64: payload.bodyBase64, in: "payload.")
  }

  /// The name of a host, which is a part of its records' identity; `nil` for an address, which is none.
  private static func name(_ host: RequestHost?) -> ByteBuffer? {
    host.flatMap { $0.isAddress ? nil : $0.name }
  }

  /// The fingerprint that the client's delivery will have.
  func fingerprint(by recipe: Recipe, method: String) -> Fingerprint {
    .make(
      recipe: recipe, head: head, method: ByteBuffer(string: method), path: target.path, query: target.query,
      body: body)
  }
}

extension RecordQuery {
  /// The fields that each delivery of the record has: those of the caller, and those by which it meets its route.
  fileprivate func fields(of policy: RoutePolicy) -> [(name: String, value: String)] {
    let parts = (policy.caller?.alternatives ?? []).compactMap { part -> (name: String, value: String)? in
      guard case .header(let name) = part, let value = self.value(of: part) else { return nil }
      // As `CallerPolicy` takes it.
      let trimmed = value.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
      return trimmed.isEmpty ? nil : (name: name, value: trimmed)
    }
    let required = policy.match.headers.map { (name: $0.name, value: $0.value) }
    return parts + required.filter { field in !parts.contains { $0.name == field.name } }
  }

  fileprivate func value(of part: CallerPart) -> String? {
    caller?.first { CallerPart.normalized($0.key) == part.text }?.value
  }

  /// The alternatives that the request must agree with: those before the given one, which it must lack, and that one.
  fileprivate func relevant(of part: CallerPart) -> ArraySlice<CallerPart> {
    let parts = part.alternatives
    let given = parts.firstIndex { value(of: $0)?.isEmpty == false }
    return parts[...(given ?? parts.count - 1)]
  }
}

extension StatedRequest {
  /// Refuses a request that does not meet the record's route, or that this route refuses.
  func checkRoute(of identity: RecordIdentity, among routes: [RoutePolicy]) throws(AdminError) {
    let name = identity.policy.name
    let choice: RouteTable.Choice
    do throws(Problem) {
      choice = try RouteTable(routes).choice(for: head, host: host, target: target, body: body)
      if let route = choice.route, route.policy.name == name, choice.method == head.slice(head.methodRange) {
        return try checkProtection(by: route)
      }
    } catch {
      throw Self.refusal(error)
    }
    let met =
      switch choice.route?.policy.name {
      case name?: "route \(name) as \(String(buffer: choice.method))"
      case let other?: "route \(other) instead of \(name)"
      case nil: "no route"
      }
    throw AdminError.bad(
      "a delivery of this payload meets \(met): give method, host, path, headers and body as the client sends them"
    )
  }

  /// Refuses a request that the route refuses under any key.
  private func checkProtection(by route: Route) throws(Problem) {
    try route.refuseUnprotectable(head, .needsBody)
    let limit = route.policy.maxRequestBody
    guard body.readableBytes <= limit else { throw .requestTooLarge(limit: limit) }
  }

  private static func refusal(_ problem: Problem) -> AdminError {
    AdminError(
      .badRequest,
      "a delivery of this payload is refused (\(problem.code.rawValue)): \(problem.detail)")
  }

  private enum Part {
    case equal
    case other
    case missing
    /// It may be in what is not stated: a field, or what enters no fingerprint.
    case open
  }

  /// Refuses a request that has another key than the record, or none: its delivery would not meet the record.
  func checkKey(_ texts: [String], of identity: RecordIdentity) throws(AdminError) {
    // A source that the request lacks is passed over. One that differs refuses, unless a part of it is not stated.
    for source in identity.policy.key.from where source != .payload {
      var parts: [Part] = []
      for (index, part) in source.parts.enumerated() {
        let text = source.parts.count == texts.count ? Array(texts[index].utf8) : nil
        let wanted = source.parts.count == 1 ? identity.key.bytes : text
        parts.append(try relation(of: part, to: wanted, of: identity))
      }
      if parts.contains(.missing) { continue }
      if source.parts.count == texts.count, parts.allSatisfy({ $0 == .equal || $0 == .open }) { return }
      try require(
        parts.contains(.open),
        "the payload has another key than the record, at \(source.text): give both alike")
    }
    let sources = identity.policy.key.from.map(\.text).joined(separator: ", ")
    throw AdminError.bad(
      "no delivery of this payload has the record's key: the route takes keys from \(sources); give the payload as the "
        + "client sends it")
  }

  private func relation(
    of source: KeySource, to wanted: [UInt8]?, of identity: RecordIdentity
  ) throws(AdminError) -> Part {
    if case .header(let name) = source, head.fields(named: name).isEmpty { return .open }
    var policy = identity.policy.key
    policy.from = [source]
    let found: IdempotencyKey?
    do {
      found = try policy.key(head: head, query: target.query, body: body) {
        fingerprint(by: identity.policy.recipe.ofKeys, method: identity.method)
      }
    } catch {
      throw Self.refusal(error)
    }
    guard let found else { return mayLeaveOut(source, identity.policy.recipe) ? .open : .missing }
    return found.bytes == wanted ? .equal : .other
  }

  private func mayLeaveOut(_ source: KeySource, _ recipe: Recipe) -> Bool {
    switch source {
    case .json(let pointer): mayLeaveOut(pointer, recipe)
    case .form(let name): recipe.leavesOut(.form(name))
    case .query(let name): recipe.leavesOut(.query(name))
    case .header, .payload, .composite: false
    }
  }

  /// Whether a member of a JSON body may be left out of what is stated, since it enters no fingerprint.
  private func mayLeaveOut(_ pointer: String, _ recipe: Recipe) -> Bool {
    recipe.leavesOutBody || body.readableBytes > 0 && recipe.leavesOut(.json(pointer))
  }

  /// Refuses a request that has another caller than the record: its delivery would not meet the record.
  func checkCaller(_ record: RecordQuery, of identity: RecordIdentity) throws(AdminError) {
    for part in (identity.policy.caller?.parts ?? []).flatMap(record.relevant(of:)) where isStated(part) {
      let value = record.value(of: part) ?? ""
      var policy = identity.policy.caller ?? CallerPolicy(parts: [])
      (policy.parts, policy.anonymous) = ([part], .allow)
      let stated = try? policy.caller(
        head: head, peer: CallerPeer(address: nil), query: target.query, body: body)
      let nobody = try? policy.caller(values: [:])
      if case .json(let pointer) = part, stated == nobody, mayLeaveOut(pointer, identity.policy.recipe) {
        continue
      }
      try require(
        stated == (try? policy.caller(values: [part.text: value])),
        "the payload has another caller than the record, at \(part.text): give both alike")
    }
  }

  private func isStated(_ part: CallerPart) -> Bool {
    switch part {
    case .header(let name): !head.fields(named: name).isEmpty
    case .basicUser, .signingKey: !head.fields(named: "authorization").isEmpty
    case .cookie: head.first(.cookie) != nil
    case .query, .json: true
    case .jwt, .address, .clientCertificate, .either, .optional: false
    }
  }
}

/// A body as an operator states it: as text, or in Base64.
enum StatedBody {
  /// - Parameter prefix: The beginning of the members' names in a refusal, before `body` and `body_base64`.
  static func bytes(
    _ text: String?, base64: String?, in prefix: String = ""
  ) throws(AdminError) -> ByteBuffer {
    guard let base64 else { return ByteBuffer(string: text ?? "") }
    try require(text == nil, "\(prefix)body and \(prefix)body_base64 are both given: give one of the two")
    guard let data = Data(base64Encoded: base64) else {
      throw AdminError.bad(
        "\(prefix)body_base64 must be Base64 (RFC 4648, section 4), padded and without line ends, such as eyJpZCI6MX0="
      )
    }
    return ByteBuffer(bytes: data)
  }
}
