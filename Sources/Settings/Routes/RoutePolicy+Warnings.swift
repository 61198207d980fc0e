import Idempotency

extension RoutePolicy {
  /// The doubts about the route's caller. Each warning of this file is the reason for one, `nil` if there is none.
  func callerWarnings(requestsCertificates: Bool) -> [String] {
    guard idempotency != .off, let parts = caller?.parts else { return [] }
    let alternatives = parts.flatMap(\.alternatives)
    var warnings = alternatives.filter(\.changesWithToken).map(Self.tokenWarning)
    warnings += alternatives.filter(\.changesWithDelivery).map(Self.deliveryWarning)
    if parts.count == 1, let part = parts.first {
      if part.mayChange { warnings.append(Self.changeWarning(part)) }
      for part in part.alternatives where key.from.contains(where: { $0.text == part.text }) {
        warnings.append(Self.keyWarning(part))
      }
    }
    warnings += parts.compactMap(Self.orderWarning)
    warnings += parts.compactMap(Self.wholeWarning)
    warnings += parts.compactMap { Self.absenceHint($0, isOnly: parts.count == 1) }
    warnings += parts.filter { $0.isOptional && $0.comesAndGoes }.map(Self.optionalWarning)
    if caller?.provesNothing == true { warnings.append(Self.proofWarning(parts)) }
    if caller?.anonymous == .allow, parts.count > 1 { warnings.append(Self.anonymousWarning(parts)) }
    if !parts.isEmpty, parts.allSatisfy(\.isOfManyClients) { warnings.append(Self.commonWarning(parts)) }
    if !requestsCertificates, parts.contains(where: \.isCertificate) {
      warnings.append(
        "names the client's certificate, but no listener has a client_ca that asks for one: every request is "
          + "refused, or anonymous")
    }
    return warnings
  }

  private static func changeWarning(_ part: CallerPart) -> String {
    "its only part is \(part.text): where a client refreshes that between two deliveries, the retry is another "
      + "caller's and runs again; name what stays, such as the token's subject (jwt:sub), or an account or device header "
      + "that a gateway sets"
  }

  private static func orderWarning(_ part: CallerPart) -> String? {
    guard let first = part.alternatives.first, first.mayChange,
      let lasting = part.alternatives.first(where: { !$0.mayChange && $0 != .address })
    else { return nil }
    return
      "takes \(first.text) before \(lasting.text): where a client refreshes the former between two deliveries, the "
      + "retry is another caller's and runs again, although the latter stays; write \(lasting.text) first"
  }

  private static func wholeWarning(_ part: CallerPart) -> String? {
    let whole = CallerPart.header("authorization")
    guard let place = part.alternatives.firstIndex(of: whole),
      let named = part.alternatives[..<place].last(where: \.isInAuthorization)
    else { return nil }
    return
      "takes \(whole.text) where \(named.text) is not found: a token without that counts whole, and where a client "
      + "refreshes it between two deliveries, the retry is another caller's and runs again; take \(whole.text) out, or "
      + "name what all of these credentials have"
  }

  private static func absenceHint(_ part: CallerPart, isOnly: Bool) -> String? {
    guard part.alternatives.count > 1, orderWarning(part) == nil, !(isOnly && part.mayChange) else {
      return nil
    }
    for (index, first) in part.alternatives.enumerated() where first.comesAndGoes {
      let others = part.alternatives[(index + 1)...]
      guard let other = others.first(where: { !(first.isInAuthorization && $0.isInAuthorization) }) else {
        continue
      }
      return
        "takes \(other.text) where \(first.text) is missing: where a client signs in, or leaves an expired token out, "
        + "between two deliveries, the retry is another caller's and runs again; let clients refresh what has expired and "
        + "then retry with the same kind of credentials, or name a part that all deliveries of an intent have"
    }
    return nil
  }

  private static func optionalWarning(_ part: CallerPart) -> String {
    "has the optional part \(part.text): where a client signs in, or gets that, between two deliveries, the retry is "
      + "another caller's and runs again; make only that optional which all deliveries of an intent have or lack, such as "
      + "header?:Stripe-Account"
  }

  private static func tokenWarning(_ part: CallerPart) -> String {
    "has the part \(part.text), which is different in each token: where a client refreshes its token between two "
      + "deliveries, the retry is another caller's and runs again; name what stays, such as the token's subject (jwt:sub)"
  }

  private static func deliveryWarning(_ part: CallerPart) -> String {
    "has the part \(part.text), which is commonly different in each delivery: every retry is another caller's then, "
      + "and runs again; name what stays, such as the token's subject (jwt:sub), or an account header that a gateway sets"
  }

  /// A signature is different in each delivery, so that the field that holds it would refuse all requests.
  private static func proofWarning(_ parts: [CallerPart]) -> String {
    let isSigned = parts.flatMap(\.alternatives).contains(.signingKey)
    let proof = isSigned ? "address or client_certificate" : "header:Authorization or jwt:sub"
    return
      "has no part that is a credential (\(parts.map(\.text).joined(separator: " and "))): whoever knows another client's "
      + "key and payload gets its recorded response, which the backend is not asked about; add what proves the client, "
      + "such as \(proof)"
  }

  private static func anonymousWarning(_ parts: [CallerPart]) -> String {
    "counts a missing part as an empty one (anonymous: allow) beside others (\(parts.map(\.text).joined(separator: ", "))): "
      + "where one of them comes or goes between two deliveries, as a cookie does, the retry is another caller's and runs "
      + "again; name one part that all deliveries of an intent have"
  }

  private static func keyWarning(_ part: CallerPart) -> String {
    "its only part is \(part.text), which carries the key: all clients are one caller then, and whoever sends "
      + "another client's key gets its response; name a field that says who the client is"
  }

  var accountHint: String? {
    guard isProtected, profile == .stripe, let caller, !caller.isShared,
      !caller.alternatives.contains(.header("stripe-account"))
    else { return nil }
    return
      "lacks the caller's part header?:Stripe-Account, by which a client of Stripe's API acts for one of several accounts with the "
      + "same credentials: one account's key finds the other's record then; add \"header?:Stripe-Account\" to parts, "
      + "or another part that says whose account it is"
  }

  var hostWarning: String? {
    guard isProtected, endpointHost == .any, let host = match.host, host.hasPrefix("*.") else { return nil }
    return
      "has host: any, so that all names of \(host) share their keys: where each of them is a customer's, one customer's "
      + "key finds another's record, unless their callers differ; name the hosts of one service by routes of their own, "
      + "or write host: own"
  }

  private static func commonWarning(_ parts: [CallerPart]) -> String {
    "has no part but \(parts.map(\.text).joined(separator: " and ")), of which many clients send the same: these are one "
      + "caller then, and whoever sends another client's key gets its response; name a field that says who the client is"
  }

  var keySourceWarnings: [String] {
    guard isProtected else { return [] }
    return key.from.flatMap(\.parts).filter(\.changesWithDelivery).map { part in
      "takes keys from \(part.text), which is commonly different in each delivery: every retry has another key then, and "
        + "runs again; take them from what a client repeats with its request, such as header:Idempotency-Key"
    }
  }

  var placeholderWarning: String? {
    guard isProtected, key.placeholders == .accept, key.from != [.payload] else { return nil }
    return
      "takes keys that name nothing (placeholders: accept): a client that sends undefined or the nil UUID for want of a "
      + "key gets one operation's response for another, or payload_mismatch; write placeholders: refuse"
  }

  /// The methods whose requests commonly have no body (RFC 9110, section 9.3).
  static let bodilessMethods: Set<String> = ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]

  var bodyKeyWarning: String? {
    guard isProtected, !match.methods.isEmpty, match.methods.allSatisfy(Self.bodilessMethods.contains),
      key.from.allSatisfy({ $0.parts.contains(where: \.needsBody) })
    else { return nil }
    let end = idempotency == .optional ? "passes unprotected" : "is refused (key_missing)"
    return
      "lists \(match.methods.joined(separator: ", ")) alone, and the route takes keys from the body alone "
      + "(\(key.from.map(\.text).joined(separator: ", "))): requests of these methods commonly have none, and such a "
      + "request \(end); take keys from a header or the query"
  }

  var keyWarnings: [String] {
    guard isProtected, key.from.contains(.payload) else { return [] }
    if recipe.leavesOutBody {
      let (member, remedy) =
        recipe.body == .none ? ("body: none", "write body: auto") : ("only", "name parts of the body, too")
      return [
        "takes the payload for the key, and fingerprint.\(member) leaves the body out: all requests of a caller "
          + "with one path and query are one operation then; \(remedy)"
      ]
    }
    if caller?.isShared == true {
      return [
        "takes the payload for the key on a route whose clients are one caller: equal requests of two clients are one "
          + "operation then"
      ]
    }
    return []
  }

  var preflightWarning: String? {
    guard isProtected, match.methods.contains("OPTIONS"),
      let source = key.from.first(where: \.fitsPreflight)
    else { return nil }
    return
      "lists OPTIONS, and the route takes keys from \(source.text): a request in the form of a browser's preflight "
      + "(with Origin and Access-Control-Request-Method, without a body) is never protected, and runs at each delivery "
      + "even with such a key; take keys from a header, or take OPTIONS out"
  }

  var retryWarning: String? {
    guard isEnforced, let retries else { return nil }
    if maxAttempts == 1 {
      return "has no effect, because with max_attempts: 1 no second attempt is made; write max_attempts: "
        + "\(retries.max + 1) or more, or retries: off"
    }
    guard waitTimeout == 0 else { return nil }
    return
      "has no effect, because no retry begins later than wait_timeout, which is 0s; write a longer wait_timeout, "
      + "or retries: off"
  }

  var unknownWarning: String? {
    guard isEnforced, onUnknown != .hold, unknownRetention <= upstream.settle else { return nil }
    let (kept, settle) = (unknownRetention.text, upstream.settle.text)
    return
      "has no effect, because an unknown outcome is kept for unknown_retention (\(kept)), and nothing runs before "
      + "settle (\(settle)) has passed: the key gets 409 key_expired; write unknown_retention: \(settle) and more, or a "
      + "shorter settle at upstreams.\(upstream.name)"
  }

  var responseWarning: String? {
    guard isEnforced, maxResponseBody == 0 else { return nil }
    return
      "keeps no response that has a body: the next delivery of a request that has succeeded gets 409 response_not_kept "
      + "in its place; write the size that responses have, such as 64KiB"
  }
}

extension CallerPart {
  /// Whether the value is commonly replaced while its holder stays the same.
  fileprivate var mayChange: Bool {
    switch self {
    case .header(let name):
      ["authorization", "cookie"].contains(name) || ["session", "token"].contains { name.contains($0) }
    case .cookie(let name), .query(let name):
      ["sess", "sid", "auth", "token", "jwt"].contains { name.lowercased().contains($0) }
    case .jwt(let claim, _): ["nonce", "sid", "auth_time"].contains(claim)
    case .json, .basicUser, .signingKey, .address, .clientCertificate: false
    case .either(let parts): parts.allSatisfy(\.mayChange)
    case .optional(let part): part.mayChange
    }
  }

  /// Whether one client commonly has the part at one time and lacks it at another.
  fileprivate var comesAndGoes: Bool {
    alternatives.contains { part in
      switch part {
      case .cookie, .jwt: true
      default: part.mayChange
      }
    }
  }

  /// Whether each token has another value of the claim (RFC 7519, section 4.1), which a JSON pointer may name.
  fileprivate var changesWithToken: Bool {
    guard case .jwt(let claim, _) = self else { return false }
    return ["exp", "nbf", "iat", "jti"].contains(claim.hasPrefix("/") ? String(claim.dropFirst()) : claim)
  }

  /// Whether many clients commonly send the same value: that of their software, of a page or of the body's form.
  fileprivate var isOfManyClients: Bool {
    if case .either(let parts) = self { return parts.contains(where: \.isOfManyClients) }
    // Many clients lack it.
    if isOptional { return true }
    guard case .header(let name) = self else { return false }
    return Self.commonFields.contains(name)
      || ["accept-", "sec-ch-", "sec-fetch-"].contains { name.hasPrefix($0) }
  }

  private static let commonFields: Set<String> = [
    "accept", "cache-control", "content-encoding", "content-language", "content-type", "dnt", "origin",
    "pragma", "priority", "referer", "user-agent", "via", "x-forwarded-host", "x-forwarded-port",
    "x-forwarded-proto", "x-requested-with",
  ]

  /// Whether the value commonly belongs to one delivery alone: a time, a trace, or a signature of both.
  var changesWithDelivery: Bool {
    switch self {
    case .header(let name): RoutePolicy.isOfOneDelivery(name)
    case .query(let name): ["nonce", "timestamp"].contains(name.lowercased())
    case .json(let pointer):
      ["nonce", "timestamp"].contains { pointer.lowercased().hasSuffix("/" + $0) }
    case .cookie, .jwt, .basicUser, .signingKey, .address, .clientCertificate: false
    case .either(let parts): parts.contains(where: \.changesWithDelivery)
    case .optional(let part): part.changesWithDelivery
    }
  }
}

extension KeySource {
  /// Whether the value commonly belongs to one delivery alone. `PayPal-Request-Id` and the like are made for retries;
  /// `X-Request-Id` is what gateways write into each delivery.
  fileprivate var changesWithDelivery: Bool {
    switch self {
    case .header(let name):
      RoutePolicy.isOfOneDelivery(name) && (!name.hasSuffix("request-id") || name == "x-request-id")
    case .query(let name), .form(let name): CallerPart.query(name).changesWithDelivery
    case .json(let pointer): CallerPart.json(pointer).changesWithDelivery
    case .payload, .composite: false
    }
  }

  /// Whether a request without a body has no value here.
  fileprivate var needsBody: Bool {
    switch self {
    case .json, .form: true
    case .header, .query, .payload, .composite: false
    }
  }
}

extension RoutePolicy {
  /// Whether a field, named in lower case, is commonly different in each delivery of one request.
  static func isOfOneDelivery(_ name: String) -> Bool {
    ["date", "dpop", "traceparent", "tracestate", "signature-input"].contains(name) || name.hasPrefix("x-b3-")
      || ["request-id", "correlation-id", "trace-id", "timestamp", "nonce", "-date", "signature"].contains {
        name.hasSuffix($0)
      } || name.hasPrefix("x-hub-signature")
  }

  var leaseWarning: String? {
    guard isEnforced, lease > Self.longLease, lease > timeToResponse else { return nil }
    return
      "is \(lease.text): where a node ends in the middle of a request, its key is refused as in_flight "
      + "for that long; a lease is renewed while its node lives, and 30s are enough"
  }

  private static var longLease: Milliseconds { .seconds(3600) }

  /// After a time-out, `settle` counts from the end of `response_timeout`. If the owner's node ends before, it counts
  /// from the lapse of the lease. A settle as long as `response_timeout` covers both.
  var takeOverWarning: String? {
    guard isEnforced, onUnknown != .hold, timeToResponse > lease, timeToResponse > upstream.settle else {
      return nil
    }
    let (response, settle) = (timeToResponse.text, upstream.settle.text)
    return "with on_unknown: \(onUnknown.rawValue), a lease of \(lease.text) is shorter than the "
      + "response_timeout of \(response): where a node ends in the middle of a request, the lease lapses and settle "
      + "(\(settle)) counts from then on, so that the request may run again \((lease + upstream.settle).text) "
      + "after it began, while its first run is still under way; write lease: \(response) or more, or settle: "
      + "\(response) or more at upstreams.\(upstream.name)"
  }
}
