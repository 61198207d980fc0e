import NIOCore
import Wire

/// One configured route, shared by all of its requests.
public final class Route: Sendable {
  public let policy: RoutePolicy
  /// The route's index in the configuration, from 0.
  public let index: Int
  /// Whether the route's requests are protected in fact (`RoutePolicy.isEnforced`), which each run asks for.
  public let isEnforced: Bool
  /// The number for the route's metrics. All routes of one name share it, over all configurations of a process.
  public let number: Int
  /// The fields that enter a request's identity or fingerprint, or that choose the route, in lower case. A `Connection`
  /// field must not name them, since the backend would not receive them.
  public let identifyingFields: [String]
  /// The number of times that a body may have to be read for key, caller and fingerprint; at least 1.
  public let bodySearches: Int
  /// The fields of a GET or HEAD that do not go to the backend, since the response is recorded for deliveries without
  /// them, too. Those that identify the request do.
  public let droppedConditions: FieldNameSet
  /// The request's fields that do not go to the backend as the client sent them; `nil` if all do.
  public let withheldFields: FieldOmission?
  /// The fields of responses that are never recorded, beyond those of one moment.
  public let unrecorded: FieldOmission
  /// Whether the route states more in its responses than others do: the key, or what a profile's clients look for.
  public let statesMore: Bool
  /// The backend's own fields of the names that the route states itself.
  public let statedByRoute: FieldOmission
  /// The places of the tokens that have to be verified before the caller is known.
  public let tokenPlaces: [TokenPlace]

  public init(policy: RoutePolicy, index: Int, number: Int = 0) {
    self.policy = policy
    self.index = index
    isEnforced = policy.isEnforced
    self.number = number
    let identifyingFields = policy.identifyingFields
    self.identifyingFields = identifyingFields
    droppedConditions = FieldNameSet.conditions.subtracting(
      identifyingFields.reduce(into: []) { set, name in
        set.insert(FieldNameSet(Array(name.utf8).withUnsafeBytes(FieldName.recognise)))
      })
    bodySearches = max(1, policy.bodySearches)
    withheldFields = policy.withheldFields
    let stated = policy.statedFields
    unrecorded = policy.replay.omission(stated: stated)
    statedByRoute = FieldOmission(FieldNameList(stated))
    statesMore = !stated.isEmpty || policy.profile?.marksFirstResponses == true
    tokenPlaces = (policy.caller?.parts ?? []).flatMap(\.tokenPlaces).reduce(into: []) { places, place in
      if !places.contains(place) { places.append(place) }
    }
  }
}

extension Route {
  /// The id of the record of a request of this route.
  ///
  /// - Parameters:
  ///   - host: The request's host; `nil` for none. It enters no id of a route whose keys count at any host.
  ///   - method: The method that enters ids.
  ///   - path: The normalised path.
  ///   - identityKey: The secret of ids; `nil` if none is configured.
  public func recordID(
    caller: Caller, host: RequestHost?, method: ByteBuffer, path: ByteBuffer, key: IdempotencyKey,
    under identityKey: IdentityKey?
  ) -> RecordID {
    .make(
      caller: caller, upstream: policy.upstream.name, host: policy.endpointHost == .any ? nil : host,
      method: method, place: policy.endpoint == .path ? .path(path) : .route(policy.name), key: key,
      under: identityKey)
  }
}

extension RoutePolicy {
  /// The fields that enter a request's identity or fingerprint by the route's settings, in lower case.
  public var identityHeaders: [String] {
    let keys = key.from.flatMap(\.parts).compactMap { source -> String? in
      if case .header(let name) = source { name } else { nil }
    }
    let callers = (caller?.alternatives ?? []).compactMap { part -> String? in
      switch part {
      case .header(let name): name
      case .cookie: "cookie"
      case .jwt(_, let place): place.field
      case .basicUser, .signingKey: "authorization"
      case .query, .json, .address, .clientCertificate, .either, .optional: nil
      }
    }
    return keys + callers + recipe.headers
  }

  fileprivate var bodySearches: Int {
    let keys = key.from.flatMap(\.parts).count { $0 != .payload && $0.isInBody }
    // A payload that is the key has another recipe than the record's fingerprint.
    let payloads = key.from.contains(.payload) && recipe.body != .none ? 1 : 0
    return keys + payloads + (caller?.alternatives.count(where: \.isInBody) ?? 0) + (explainsMismatch ? 2 : 0)
      + (recipe.body == .none ? 0 : 1)
  }

  fileprivate var identifyingFields: [String] {
    identityHeaders + match.headers.map(\.name)
      + ["content-type", "content-encoding"] + OperationFields.texts
      + FieldName.allCases.filter(FieldNameSet.methodOverrides.contains).map { "\($0.lowercased)" }
  }
}

extension Route {
  /// Refuses requests whose exchange cannot be recorded, and those whose `Connection` field hides from the backend a
  /// field of the key or the caller.
  public func refuseUnprotectable(_ head: MessageHead, _ finding: KeyFinding) throws(Problem) {
    if finding != .missing || policy.idempotency != .optional {
      guard !head.requestsUpgrade else { throw .notImplemented }
      guard !head.isGRPC else { throw .grpcNotProtected }
    }
    guard head.connectionNamesMore else { return }
    for name in identifyingFields where head.connectionNames(name) {
      throw .badRequest(.connectionNamesIdentity)
    }
  }
}

extension MessageHead {
  /// Whether another protocol is wanted. An offer of `h2c` is left alone, as RFC 9113 has it: some clients make it
  /// with every first request.
  public var requestsUpgrade: Bool {
    guard names.contains(.upgrade) else { return false }
    return fields.contains { field in
      field.name == .upgrade && !withBytes(field.valueRange) { ASCII.equalsIgnoringCase($0, "h2c") }
    }
  }

  /// Whether the body is of gRPC: `application/grpc`, and all that begins so. Its failures come with status 200.
  public var isGRPC: Bool {
    guard let type = first(.contentType) else { return false }
    return withBytes(type.valueRange) { value in
      let name: StaticString = "application/grpc"
      return value.count >= name.utf8CodeUnitCount
        && ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: value[..<name.utf8CodeUnitCount]), name)
    }
  }
}
