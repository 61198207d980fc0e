import Idempotency
import HTTPTypes
import NIOCore
import Wire

/// The description of a record by the parts of its request: route, caller and key.
struct RecordQuery: OperatorDocument {
  enum CodingKeys: CodingKey, CaseIterable { case route, key, caller, path, method, host }

  var route: String
  var key: KeyTexts
  /// The caller by part, in the notation of the configuration: `{"header:Authorization": "Bearer alice"}`.
  var caller: [String: String]?
  /// The request's target. Not needed if the route identifies requests by its name and not by their paths, or has one
  /// path only.
  var path: String?
  /// The request's method. Not needed if the route has one method only.
  var method: String?
  /// The client's `Host`; `nil` if it was an address.
  var host: String?

  /// The record with the parts that make its id.
  func identity(
    among routes: [RoutePolicy], under identityKey: IdentityKey?
  ) throws(AdminError) -> RecordIdentity {
    let policy = try routes.route(named: route)
    guard policy.isProtected, let callerPolicy = policy.caller else {
      throw AdminError(.badRequest, "route \(route) keeps no records: its idempotency is off")
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
      throw AdminError(.badRequest, "route \(route) takes several methods: give method")
    }
    guard method.utf8.allSatisfy(ASCII.isTokenByte),
      Array(method.utf8).withUnsafeBytes(policy.methods.contains)
    else {
      throw AdminError(
        .badRequest, "route \(route) takes no method \(method); give one of its methods, in capitals")
    }
    // As `RouteTable.choice` refuses it: no enforced route keeps a record under such a method.
    let capitals = method.uppercased()
    guard
      capitals == method || policy.shadow || !Array(capitals.utf8).withUnsafeBytes(policy.methods.contains)
    else {
      throw AdminError(
        .badRequest,
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
      throw AdminError(.badRequest, "the host is not one that a request can have")
    }
    let name = found?.name ?? ByteBuffer()
    guard let own = policy.match.host, !name.withUnsafeReadableBytes(HostPattern(own).matches) else {
      return found
    }
    throw AdminError(.badRequest, "route \(route) takes requests to \(own) alone: give their host")
  }

  private func place(_ policy: RoutePolicy, _ method: String) throws(AdminError) -> EndpointPlace {
    let isPathNeeded = policy.endpoint == .path
    guard let path = path ?? (isPathNeeded ? policy.match.path?.literal : nil) else {
      guard isPathNeeded else { return .route(policy.name) }
      throw AdminError(.badRequest, "route \(route) takes several paths: give the request's path")
    }
    // The host of a URL would be dropped, and another host's record found.
    guard path.hasPrefix("/") else {
      throw AdminError(.badRequest, "a path begins with a slash: give a URL's path and host apart")
    }
    let normal: ByteBuffer
    do {
      normal = try RequestTarget(
        MessageHead(method: method, target: path), reading: policy.pathReading
      ).path
    } catch {
      throw AdminError(.badRequest, "the path or the method is not one that a request can have")
    }
    if let own = policy.match.path,
      !normal.withUnsafeReadableBytes(PathMatcher(own, spelling: policy.spelling).matches)
    {
      throw AdminError(.badRequest, "route \(route) does not take the path \(path): it takes \(own.text)")
    }
    return isPathNeeded ? .path(normal) : .route(policy.name)
  }
}

/// A record that an operator has described by the parts of its request.
struct RecordIdentity: Sendable {
  let id: RecordID
  let policy: RoutePolicy
  /// The host of its requests; `nil` if none is given.
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
