import Idempotency
import NIOCore
import Telemetry
import Wire

/// The attribution of records and log entries, also of requests that end before they are identified.
extension RequestRunner {
  /// Notes the digests of key and caller, for the access log and for the journal.
  ///
  /// - Parameter attribution: The origin in its claim, if there is one, whose digests need not be made again.
  @inline(never)
  func noteIdentity(of call: KeyedCall, as attribution: Attribution? = nil) {
    if delivery.logEntry.keyDigest == nil {
      delivery.logEntry.keyDigest = attribution?.keyDigest ?? call.key.digestText(by: environment.digests)
    }
    guard delivery.logEntry.callerDigest == nil else { return }
    if let digest = attribution?.callerDigest {
      delivery.logEntry.callerDigest = digest
    } else {
      noteCaller(call.caller)
    }
  }

  func noteCaller(_ caller: Caller) {
    delivery.logEntry.hasSharedDigests = environment.digests.isShared
    delivery.logEntry.callerDigest = caller.digestText(by: environment.digests)
  }

  /// The origin that a record names. Its digests are those of the log entry, if that has them: they are made once.
  ///
  /// There are no digests until the secret of all nodes is known, because nobody could find the record by them.
  @inline(never)
  func attribution(of call: KeyedCall) -> Attribution {
    // A copy of the policy would cost as much as the digests.
    let route = call.route
    guard let digests = worker.digestsOfAllNodes() else {
      return Attribution(route: route.policy.name, node: environment.node)
    }
    // The delivery of a batch has no key of its own.
    let isNoted = delivery.logEntry.hasSharedDigests && route.policy.batch == nil
    let key = isNoted ? delivery.logEntry.keyDigest : nil
    let caller = isNoted ? delivery.logEntry.callerDigest : nil
    return Attribution(
      route: route.policy.name, keyDigest: key ?? digests.text(of: call.key),
      callerDigest: caller ?? digests.text(of: call.caller), node: environment.node)
  }

  /// Notes the route of a request that is refused before it was identified, and, as far as its head holds them, its
  /// record and the digests of its key and its caller.
  @inline(never)
  func noteSubjectOfRefused() {
    guard delivery.recordID == nil, delivery.logEntry.recordID == nil, delivery.logEntry.would == nil,
      let (target, host) = try? configuration.routes.address(
        of: head, operation: delivery.operation, form: delivery.form), target.form != .authority
    else { return }
    if head.method == .options, preflighted(target, host: host) != nil { return }
    if let path = ReservedPath(head, path: target.path) {
      _ = try? reserved(path, target, host: host)
      return
    }
    guard
      let choice = try? configuration.routes.choice(
        for: head, host: host?.name ?? ByteBuffer(), path: target.path, query: target.query,
        operation: delivery.operation, form: delivery.form),
      let route = choice.route
    else { return }
    noteRoute(route)
    guard route.policy.isEnforced, !choice.isUndecided else { return }
    noteIdentityOfRefused(route, target, host, method: choice.method)
  }

  func noteRoute(_ route: Route?) {
    delivery.logEntry.route = route?.policy.name
    delivery.logEntry.routeNumber = route?.number ?? 0
    delivery.logEntry.pathTemplate = route?.policy.match.path?.text
  }

  /// Notes what a protected request's head holds of its identity. The items of a batch have their keys in the body, and
  /// a token that was not verified names no caller.
  private func noteIdentityOfRefused(
    _ route: Route, _ target: RequestTarget, _ host: RequestHost?, method: ByteBuffer
  ) {
    guard configuration.accessLog.isEnabled || environment.journal != nil else { return }
    var key: IdempotencyKey?
    if route.policy.batch == nil,
      case .found(let found)? = try? route.policy.key.keyBeforeBody(head: head, query: target.query)
    {
      key = found
      delivery.logEntry.keyDigest = found.digestText(by: environment.digests)
    }
    guard let peer = identifiedPeer(tokensAt: route.tokenPlaces),
      let caller = try? route.policy.caller?.callerBeforeBody(head: head, peer: peer, query: target.query)
    else { return }
    noteCaller(caller)
    guard let key else { return }
    delivery.recordID = route.recordID(
      caller: caller, host: host, method: method, path: target.path, key: key, under: environment.identityKey)
  }

  /// Notes the earlier request that an inquiry is about. The inquiry is no delivery of it.
  func noteInquiry(_ inquiry: OutcomeInquiry) {
    noteRoute(inquiry.route)
    guard configuration.accessLog.isEnabled else { return }
    delivery.logEntry.recordID = inquiry.id
    delivery.logEntry.keyDigest = inquiry.key.digestText(by: environment.digests)
  }

  /// The maximum number of a batch's records that one log entry names.
  private static var maxNamedRecords: Int { 8 }

  /// Notes the number of a batch's items and their first records.
  @inline(never)
  func noteItems(of batch: BatchCall) {
    guard configuration.accessLog.isEnabled else { return }
    delivery.logEntry.items = batch.places.count
    delivery.logEntry.itemRecords = batch.calls.prefix(Self.maxNamedRecords).map(\.id.text)
      .joined(separator: ",")
  }
}
