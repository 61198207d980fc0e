import HTTPTypes
import Idempotency
import NIOCore
import Wire

/// The description of a record by the parts of its request: route, caller and key.
struct RecordQuery: OperatorDocument {
  enum CodingKeys: CodingKey, CaseIterable { case route, key, caller, path, method, host }

  var route: String
  var key: KeyTexts
  /// The caller by part, in the notation of the configuration: `{"header:Authorization": "Bearer alice"}`.
  var caller: [String: String]?
  /// The request's target. Not needed if the route has one path, or identifies requests by its name.
  var path: String?
  /// The request's method. Not needed if the route has one method only.
  var method: String?
  var host: String?

  func identity(
    among routes: [RoutePolicy], under identityKey: IdentityKey?
  ) throws(AdminError) -> RecordIdentity {
    let policy = try routes.route(named: route)
    guard policy.isProtected, let callerPolicy = policy.caller else {
      throw AdminError.bad("route \(route) keeps no records: its idempotency is off")
    }
    let method = try checkedMethod(policy)
    let (caller, key) = (try caller(callerPolicy), try policy.statedKey(self.key.texts))
    let host = try requestHost(policy)
    let id = RecordID.make(
      caller: caller, upstream: policy.upstream.name, host: policy.endpointHost == .any ? nil : host,
      method: ByteBuffer(string: method), place: try place(policy, method), key: key, under: identityKey)
    return RecordIdentity(
      id: policy.shadow ? id.shadowed : id, policy: policy, host: host, method: method, key: key,
      caller: caller)
  }

  /// The method of the record's requests, as the proxy takes it.
  private func checkedMethod(_ policy: RoutePolicy) throws(AdminError) -> String {
    guard let method = method ?? (policy.match.methods.count == 1 ? policy.match.methods.first : nil) else {
      throw AdminError.bad("route \(route) takes several methods: give method")
    }
    try require(
      method.utf8.allSatisfy(ASCII.isTokenByte)
        && Array(method.utf8).withUnsafeBytes(policy.methods.contains),
      "route \(route) takes no method \(method); give one of its methods, in capitals")
    // As `RouteTable.choice` refuses it: no enforced route keeps a record under such a method.
    let capitals = method.uppercased()
    guard
      capitals == method || policy.shadow || !Array(capitals.utf8).withUnsafeBytes(policy.methods.contains)
    else {
      throw AdminError.bad(
        "a delivery with the method \(method) is refused (bad_request): \(Problem.badRequest(.methodCase).detail)"
      )
    }
    return method
  }

  private func requestHost(_ policy: RoutePolicy) throws(AdminError) -> RequestHost? {
    let found: RequestHost?
    do {
      found = try RequestHost(ByteBuffer(string: host ?? ""))
    } catch {
      throw AdminError.bad("the host is not one that a request can have")
    }
    let name = found?.name ?? ByteBuffer()
    guard let own = policy.match.host, !name.withUnsafeReadableBytes(HostPattern(own).matches) else {
      return found
    }
    throw AdminError.bad("route \(route) takes requests to \(own) alone: give their host")
  }

  private func place(_ policy: RoutePolicy, _ method: String) throws(AdminError) -> EndpointPlace {
    let isPathNeeded = policy.endpoint == .path
    guard let path = path ?? (isPathNeeded ? policy.match.path?.literal : nil) else {
      guard isPathNeeded else { return .route(policy.name) }
      throw AdminError.bad("route \(route) takes several paths: give the request's path")
    }
    // The host of a URL would be dropped, and another host's record found.
    try require(path.hasPrefix("/"), "a path begins with a slash: give a URL's path and host apart")
    let normal: ByteBuffer
    do {
      normal = try RequestTarget(
        MessageHead(method: method, target: path), reading: policy.pathReading
      ).path
    } catch {
      throw AdminError.bad("the path or the method is not one that a request can have")
    }
    if let own = policy.match.path,
      !normal.withUnsafeReadableBytes(PathMatcher(own, spelling: policy.spelling).matches)
    {
      throw AdminError.bad("route \(route) does not take the path \(path): it takes \(own.text)")
    }
    return isPathNeeded ? .path(normal) : .route(policy.name)
  }
}

/// A record that an operator has described by the parts of its request.
struct RecordIdentity: Sendable {
  let id: RecordID
  let policy: RoutePolicy
  let host: RequestHost?
  let method: String
  let key: IdempotencyKey
  let caller: Caller
}

/// A key as an operator writes it: a text, or a list with a text for each part of a composite key.
struct KeyTexts: Decodable {
  let texts: [String]

  init(texts: [String]) { self.texts = texts }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let text = try? container.decode(String.self) {
      texts = [text]
    } else {
      texts = try container.decode([String].self)
    }
  }
}

extension CallerPart {
  /// Whether the part is the token's issuer itself.
  fileprivate var isIssuer: Bool {
    if case .jwt("iss", _) = self { true } else { false }
  }
}

extension RecordQuery {
  /// The caller that the operator's values make by the route's policy, as those of a delivery would.
  func caller(_ policy: CallerPolicy) throws(AdminError) -> Caller {
    let values = try withIssuer(caller ?? [:], policy)
    do {
      return try policy.caller(values: values)
    } catch {
      throw AdminError.bad(advice(on: error))
    }
  }

  /// The values with the issuer of the caller's token, without which no token with an `iss` meets the record.
  private func withIssuer(
    _ values: [String: String], _ policy: CallerPolicy
  ) throws(AdminError) -> [String: String] {
    let stated = Set(values.filter { !$0.value.isEmpty }.keys.map(CallerPart.normalized))
    let claims = policy.alternatives.filter { $0.isOfToken && stated.contains($0.text) }
    guard !claims.isEmpty else { return values }
    var completed = values
    if let issuer = claims.first(where: \.isIssuer).flatMap({ completed[$0.text] }) {
      try require(
        (completed["jwt_issuer"] ?? policy.issuer ?? issuer) == issuer,
        "no token has this caller: jwt:iss is another issuer than jwt_issuer, or than the route's")
      completed["jwt_issuer"] = issuer
    }
    try require(
      policy.issuer != nil || completed["jwt_issuer"] != nil,
      "route \(route) takes tokens of any issuer: give the caller's jwt_issuer, too, as the token's iss has it; an "
        + "empty one stands for a token without iss")
    return completed
  }

  private func advice(on fault: CallerPolicy.ValueFault) -> String {
    switch fault {
    case .unknown(let part): "\(part) is no part of route \(route)'s caller"
    case .repeated(let part): "\(part) is given twice: give it once"
    case .otherIssuer(let own):
      "the tokens of route \(route) have the issuer \(own): take jwt_issuer out, or write that"
    case .refused(.missing(.header("authorization"))):
      "route \(route) needs the caller's header:authorization, with the credentials after its scheme: Bearer TOKEN"
    case .refused(.missing(.either(let parts))):
      "route \(route) needs one of the caller's \(parts.map(\.text).joined(separator: ", ")): give the first that its "
        + "requests have"
    case .refused(.missing(let part)): "route \(route) needs the caller's \(part.text)"
    case .refused(.unknownScheme):
      "route \(route) refuses the scheme of this header:authorization: write Bearer TOKEN, or another scheme that the "
        + "route knows"
    case .refused(.otherScheme(let part)): "no request has this value of \(part.text)"
    case .refused(.unreadable(let part)), .refused(.repeated(let part)):
      "no request has this value of \(part.text): \(Self.form(of: part))"
    case .refused(.token): "no request has this caller"
    }
  }

  private static func form(of part: CallerPart) -> String {
    switch part {
    case .address: "write an IP address without a port, such as 192.0.2.1 or 2001:db8::1"
    case .basicUser: "write the user name, without its password"
    case .signingKey: "write KEY/REGION/SERVICE, such as AKIDEXAMPLE/us-east-1/s3"
    case .header: "write the field's value, without line ends and other control characters"
    case .cookie: "write the cookie's value, without semicolons and control characters"
    case .clientCertificate(.subject): "write the certificate's subject"
    case .clientCertificate(.san):
      "write the certificate's names with their kind: uri:, dns: or email:"
    case .clientCertificate(.identity):
      "write the certificate's names with their kind (uri:, dns: or email:), or its subject after subject:"
    case .query, .json, .jwt, .either, .optional: "write it as it is, without encoding"
    }
  }
}
