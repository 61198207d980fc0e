import Foundation
import Idempotency
import NIOCore
import Proxy
import Wire

// The fingerprint. Each statement about it is found by making it once more with another recipe.
extension Explanation {
  private static let maxMembers = 40

  mutating func explainFingerprint(
    _ recipe: Recipe, of head: MessageHead, _ target: RequestTarget, method: ByteBuffer, _ call: KeyedCall
  ) {
    let make: (Recipe) -> Digest256 = { [body] recipe in
      Fingerprint.make(
        recipe: recipe, head: head, method: method, path: target.path, query: target.query, body: body
      ).digest
    }
    var counted = ["method", "path"]
    if let query = target.query, query.readableBytes > 0 {
      counted.append(recipe.sorts(query) ? "query (in the order of its names)" : "query (\(Self.inOrder))")
    }
    if let type = mediaType(head) { counted.append("media type \(type)") }
    counted += OperationFields.parameters(in: head).map { "its parameter \($0)" }
    counted += (OperationFields.names(in: head) + recipe.headers).map { "header \($0)" }
    let form = recipe.form(of: body, head)
    var texts = [
      "recipe \(recipe.text), digest \(call.fingerprint.digest.hexText.prefix(16))…",
      "counts: " + counted.joined(separator: ", ") + ", " + bodyForm(form, recipe, head),
    ]
    if form == .json || form == .jsonByText { texts += members(recipe, make) }
    texts += selected(recipe, make)
    add("fingerprint", texts)
  }

  private func mediaType(_ head: MessageHead) -> String? {
    head.string(.contentType).map {
      $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    }
  }

  private func bodyForm(_ form: PayloadForm, _ recipe: Recipe, _ head: MessageHead) -> String {
    let isUndone = head.hasContentCoding && recipe.body == .auto && form != .coded
    return (isUndone ? "of the content that is compressed, " : "") + text(of: form, recipe, head)
      + (isWhole(form, recipe) ? ", as a whole, since only names no part of a body of this kind" : "")
  }

  private func isWhole(_ form: PayloadForm, _ recipe: Recipe) -> Bool {
    guard !recipe.only.isEmpty, recipe.body == .auto, !recipe.leavesOutBody else { return false }
    return !recipe.only.contains { part in
      switch (part, form) {
      case (.json, .json), (.json, .jsonByText), (.form, .pairs), (.form, .orderedPairs), (.form, .parts),
        (.part, .parts):
        true
      default: false
      }
    }
  }

  private func text(of form: PayloadForm, _ recipe: Recipe, _ head: MessageHead) -> String {
    switch form {
    case .none: "not the body"
    case .raw: "the body's bytes"
    case .coded: "the body's bytes as they are coded"
    case .pairs: "the form's pairs, whatever their order"
    case .orderedPairs: "the form's pairs \(Self.inOrder)"
    case .parts: "the parts of the body without their boundaries"
    case .json: "the body as JSON, whatever the order of its members"
    case .jsonByText:
      "the body as JSON, whatever the order of its members, by its text, since members are "
        + (recipe.only.isEmpty ? "left out" : "named") + "; its type is " + (mediaType(head) ?? "not stated")
    }
  }

  private static let inOrder =
    "in their order, since a name has a [ or a ., or is another one's but for letter case"

  /// The members of a JSON body that count. A member counts if leaving it out, too, makes another fingerprint.
  private func members(_ recipe: Recipe, _ make: @escaping (Recipe) -> Digest256) -> [String] {
    let object = try? JSONSerialization.jsonObject(with: Data(body.readableBytesView))
    guard recipe.body == .auto, recipe.only.isEmpty,
      let names = (object as? [String: Any])?.keys.sorted(), !names.isEmpty
    else { return [] }
    let base = make(recipe)
    let pointer = { (name: String) in
      PayloadPart.json("/" + name.replacing("~", with: "~0").replacing("/", with: "~1"))
    }
    let counted = names.prefix(Self.maxMembers).filter {
      make(recipe.selecting(ignore: recipe.ignore + [pointer($0)])) != base
    }
    guard !counted.isEmpty || !recipe.ignore.isEmpty else { return [] }
    let more = names.count > Self.maxMembers ? ", …" : ""
    return ["members that count: " + (counted.isEmpty ? "none" : counted.joined(separator: ", ") + more)]
  }

  /// The parts that are left out, or that alone count: this request has one if its fingerprint differs without it.
  private func selected(_ recipe: Recipe, _ make: (Recipe) -> Digest256) -> [String] {
    let base = make(recipe)
    let ignored = recipe.ignore.map { part in
      let isThere = make(recipe.selecting(ignore: recipe.ignore.filter { $0 != part })) != base
      return "left out: \(part.text)" + (isThere ? "" : Self.absent(part))
    }
    let only = recipe.only.map { part in
      let others = recipe.only.map { $0 == part ? part.ofNobody : $0 }
      let isThere = make(recipe.selecting(only: others)) != base
      return "counts alone: \(part.text)" + (isThere ? "" : Self.absent(part))
    }
    return ignored + only
  }

  private static func absent(_ part: PayloadPart) -> String {
    part.isInBody ? " (not in this body)" : " (not in this query)"
  }
}

extension PayloadPart {
  fileprivate var ofNobody: PayloadPart {
    switch self {
    case .json, .literal: .json("/\u{1}")
    case .query: .query("\u{1}")
    case .form: .form("\u{1}")
    case .part, .fileNames: .part("\u{1}")
    }
  }
}

extension Explanation {
  func rules(of policy: RoutePolicy) -> [String] {
    (policy.outcomes.rules?.list ?? []).enumerated().map { "rule \($0 + 1): \($1.text)" }
  }

  /// Explains what a response of the backend would be to the record of this request.
  mutating func explain(_ response: ExplainedResponse, _ policy: RoutePolicy) {
    hasExplainedResponse = true
    let status = response.head.status
    let body = readable(response, policy)
    let steering = Steering(of: response.head, body: body, by: policy)
    let outcome = policy.ownClass(of: status, steering: steering, attempt: 1)
    let later = policy.outcomeClassAfterLoss(of: status, steering: steering)
    add(
      "response",
      [
        "\(status), \(reason(steering, policy))",
        "class \(outcome.rawValue): \(consequence(outcome, status, steering, policy))",
      ]
        + (later == outcome ? [] : ["after a lost outcome: class \(later.rawValue)"])
        + notes(of: response, body, policy))
  }

  /// The body as far as the proxy reads it for rules.
  private func readable(_ response: ExplainedResponse, _ policy: RoutePolicy) -> ByteBuffer? {
    guard !policy.shadow, !policy.stream, response.body.readableBytes <= policy.maxResponseBody else {
      return nil
    }
    return response.body
  }

  private func reason(_ steering: Steering, _ policy: RoutePolicy) -> String {
    if steering.outcome != nil { return "by its Idempotency-Outcome, which counts before all rules" }
    guard let rule = steering.rule else {
      let table = policy.outcomes.rules == nil ? "" : "meets no rule, "
      return table + "by the route's table of statuses and what the response says of its sender"
    }
    return "meets rule \(rule.index.map { "\($0 + 1): " } ?? "")"
      + (rule.index.flatMap { policy.outcomes.rules?.list[$0].text } ?? "")
  }

  private func consequence(
    _ outcome: OutcomeClass, _ status: Int, _ steering: Steering, _ policy: RoutePolicy
  ) -> String {
    switch outcome {
    case .final: return "recorded and replayed"
    case .unknown: return "the outcome is unknown (on_unknown: \(policy.onUnknown))"
    case .retry:
      return steering.isRejection(status) || policy.released == .forget
        ? "released, and another payload may follow under the key" : "released, and the next delivery runs"
    }
  }

  private func notes(of response: ExplainedResponse, _ body: ByteBuffer?, _ policy: RoutePolicy) -> [String] {
    guard policy.outcomes.rules?.list.contains(where: { !$0.members.isEmpty }) == true else { return [] }
    if policy.shadow { return ["(no rule with json is met: a shadowed route reads no bodies)"] }
    if body == nil {
      return ["(no rule with json is met: the body is larger than max_response_body)"]
    }
    return response.head.hasContentCoding ? ["(no rule with json is met: the body is coded)"] : []
  }
}

extension OutcomeRule {
  fileprivate var text: String {
    var parts: [String] = []
    if !statuses.isEmpty { parts.append("status " + statuses.map(Self.text).joined(separator: ", ")) }
    parts += headers.map { "header \($0.name): \($0.wanted.text)" }
    parts += members.map { "json \($0.pointer): \($0.wanted.text)" }
    return parts.joined(separator: "; ") + " → \(verdict.rawValue)"
  }
}

extension OutcomeRule.Wanted {
  fileprivate var text: String {
    switch self {
    case .present: "present"
    case .text(let text): text
    }
  }
}
