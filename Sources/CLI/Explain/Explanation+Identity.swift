import Idempotency
import NIOCore
import Proxy
import Settings
import Wire

extension Explanation {
  /// - Parameter method: The record's method, which enters the fingerprint of a payload that is the key.
  mutating func explainKey(
    of policy: RoutePolicy, _ head: MessageHead, _ target: RequestTarget, method: ByteBuffer
  ) {
    var texts: [String] = []
    var isFound = false
    for source in policy.key.from {
      guard !isFound else {
        texts.append("\(source.text): not looked at")
        continue
      }
      var own = policy.key
      own.from = [source]
      do throws(Problem) {
        let key = try own.key(head: head, query: target.query, body: body) {
          Fingerprint.make(
            recipe: policy.recipe.ofKeys, head: head, method: method, path: target.path, query: target.query,
            body: body)
        }
        isFound = key != nil
        let isByText = key != nil && source.readsJSON && !head.declaresJSON
        texts.append(
          "\(source.text): \(key.map(Self.shown) ?? "none")"
            + (isByText ? ", in the body, which is JSON by its text and not by its type" : "")
            + (source == .payload ? " by recipe \(policy.recipe.ofKeys.text)" : ""))
      } catch {
        isFound = true
        texts.append("\(source.text): not valid (\(error.code.rawValue)): \(error.detail)")
      }
    }
    add("key", texts)
  }

  static func shown(_ key: IdempotencyKey) -> String {
    guard !key.isOfPayload else {
      let digits = key.bytes.dropFirst().prefix(8).map(\.hexText).joined()
      return "the payload's fingerprint \(digits)…"
    }
    let text = String(decoding: key.bytes, as: UTF8.self)
    guard key.bytes.allSatisfy({ 0x20...0x7E ~= $0 }) else { return "found, in several parts" }
    return key.bytes.count <= 64 ? text : "\(text.prefix(61))… (\(key.bytes.count) bytes)"
  }

  /// The parts of the caller, each read alone. Values are credentials, and shown as digests.
  mutating func explainCaller(
    of policy: RoutePolicy, _ head: MessageHead, _ target: RequestTarget, _ peer: CallerPeer
  ) {
    guard let caller = policy.caller else { return }
    guard !caller.isShared else { return add("caller", "shared: all clients are one caller") }
    var texts: [String] = []
    for part in caller.parts {
      var own = caller
      own.parts = [part]
      own.anonymous = .allow
      let text: String
      do throws(Problem) {
        let found = try own.caller(head: head, peer: peer, query: target.query, body: body)
        text =
          found == (try? own.caller(values: [:]))
          ? missing(part, of: caller)
          : chosen(of: part, found, own, head, target, peer) + Self.digest(found.framed)
      } catch {
        text = "refused (\(error.code.rawValue))"
      }
      texts.append("\(part.text): \(text)")
    }
    add("caller", texts)
  }

  /// The alternative that makes the caller; nothing for a part without alternatives.
  private func chosen(
    of part: CallerPart, _ found: Caller, _ policy: CallerPolicy, _ head: MessageHead,
    _ target: RequestTarget,
    _ peer: CallerPeer
  ) -> String {
    guard case .either(let parts) = part else { return "" }
    let chosen = parts.first { part in
      var own = policy
      own.parts = [part]
      return found == (try? own.caller(head: head, peer: peer, query: target.query, body: body))
    }
    return chosen.map { "by \($0.text), the first that it has, " } ?? ""
  }

  private func missing(_ part: CallerPart, of caller: CallerPolicy) -> String {
    // Each connection here has an address, so that only a trusted proxy can leave the client's open.
    let reason = part == .address ? ", since a trusted proxy states none in X-Forwarded-For" : ""
    if part.isOptional { return "missing, which its callers may lack: they are others than those with it" }
    return "missing" + reason + (caller.anonymous == .allow ? ", which counts as an anonymous caller" : "")
  }

  private static func digest(_ bytes: [UInt8]) -> String {
    "present, sha256 \(Digest256.sha256(of: bytes).hexText.prefix(8))…"
  }

  /// The digests by which the log shows key and caller, where they can be computed without the store.
  mutating func explainDigests(_ call: KeyedCall) {
    guard let secret = settings.store.idSecret else {
      return add(
        "in the log", "as digests under a secret in the store, which is not read here: see `semel key find`")
    }
    let digests = LogDigests(secret: secret)
    add("in the log", "key=\(call.key.digestText(by: digests)) caller=\(call.caller.digestText(by: digests))")
  }

  /// The field by which responses repeat the key, on a route with `echo_key`.
  mutating func explainEcho(of key: IdempotencyKey, by policy: RoutePolicy, _ head: MessageHead) {
    guard policy.echoesKey, !policy.shadow else { return }
    guard let line = policy.key.echo(of: key, in: head) else {
      return add("echo", "none: a key of several values or of the payload is not repeated (echo_key)")
    }
    add("echo", "responses repeat the key in \(String(buffer: line).prefix { $0 != ":" }) (echo_key)")
  }

  /// - Parameter name: The field in which the backend gets the record's id; `nil` if it does not.
  mutating func explainRecords(
    _ records: [String], _ policy: RoutePolicy, name: String? = "Idempotency-Request-Id"
  ) {
    let paths = policy.endpoint == .route ? "all paths of the route together" : "its path alone"
    let scope = paths + (policy.endpointHost == .any ? ", at any host" : "")
    let prefix = name.map { "\($0); " } ?? ""
    add(
      "record", records + ["(\(prefix)endpoint: \(policy.endpoint), so a key counts for \(scope))"])
    add("stored", [place] + stored(policy))
    add(
      "kept",
      "\(recordsResponse(policy) ? "replayed" : "known to have ended") for \(policy.retention.text), remembered for "
        + "\(policy.remember.text), after which a retry runs again; an unknown outcome for "
        + "\(policy.unknownRetention.text); a claim for \(policy.lease.text) without renewal")
    add("outcomes", outcomes(of: policy))
    let duplicates =
      policy.duplicates == .wait
      ? "wait up to \(policy.waitTimeout.text), then get \(policy.inFlightStatus) in_flight"
      : "get \(policy.inFlightStatus) in_flight at once"
    add("duplicates", "\(duplicates); another payload gets \(policy.mismatchStatus) payload_mismatch")
    add(
      "unknown",
      "on_unknown: \(policy.onUnknown)"
        + (policy.onUnknown == .hold ? "" : ", \(policy.upstream.settle.text) after the loss"))
    let upstream = policy.upstream
    add("backend", "\(upstream.name), \(upstream.address), response within \(policy.timeToResponse.text)")
    switch policy.forwardKey {
    case .keep: break
    case .drop: add("", "(without the header that holds the key)")
    case .rename(let name): add("", "(the header that holds the key is \(name) there)")
    }
    if let given = self.response { explain(given, policy) }
  }

  private var place: String {
    switch settings.store.place {
    case .embedded(let path): "in the file \(path)"
    case .redis(let redis): "in Redis, \(redis.place), namespace \(settings.store.namespace)"
    }
  }

  private func stored(_ policy: RoutePolicy) -> [String] {
    if policy.shadow { return ["the status of the response"] }
    guard recordsResponse(policy) else {
      return ["status and Location of the response (record: status), no body"]
    }
    let response = "response of up to \(policy.maxResponseBody) bytes"
    return [response + sealed + compressed + cookies(policy), "without the fields \(unrecorded(policy))"]
  }

  private func recordsResponse(_ policy: RoutePolicy) -> Bool { policy.record == .response && !policy.shadow }

  private var sealed: String { settings.store.encryption == nil ? "" : ", sealed with the client's key" }

  private var compressed: String {
    switch settings.store.compression {
    case .off: ""
    case .auto: settings.store.encryption == nil ? ", compressed where that saves room" : ""
    case .always: ", compressed where that saves room"
    }
  }

  private func cookies(_ policy: RoutePolicy) -> String {
    policy.setCookie == .keep ? ", with cookies" : ", without cookies"
  }

  /// The fields that no record of the route has, beyond those of one moment.
  private func unrecorded(_ policy: RoutePolicy) -> String {
    let names = FieldNameList.rateLimits.names + policy.replay.drop.names
    let kept = policy.replay.keep.names
    return names.joined(separator: ", ") + (kept.isEmpty ? "" : ", but with \(kept.joined(separator: ", "))")
  }

  private func outcomes(of policy: RoutePolicy) -> [String] {
    let listed = { (outcome: OutcomeClass) in
      (100..<600).filter { policy.outcomes[$0] == outcome }.ranges
    }
    let bySender = [
      (409, "409 with Retry-After\(policy.behind == .ownKeys ? ", or at the first attempt" : ""): retry"),
      (503, "503 of an intermediary, without Retry-After: unknown"),
    ]
    let forgotten = policy.released == .forget ? ", and another payload may follow" : ""
    return [
      "final (stored): all but the following",
      "retry (the next delivery runs\(forgotten)): \(listed(.retry))", "unknown: \(listed(.unknown))",
    ] + rules(of: policy) + bySender.filter { !policy.outcomes.isListed(status: $0.0) }.map(\.1)
  }
}

extension [Int] {
  /// Ascending numbers as text, with ranges: `401, 500-504`.
  fileprivate var ranges: String {
    var parts: [ClosedRange<Int>] = []
    for number in self {
      if let last = parts.last, last.upperBound == number - 1 {
        parts[parts.count - 1] = last.lowerBound...number
      } else {
        parts.append(number...number)
      }
    }
    let texts = parts.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
    return texts.isEmpty ? "none" : texts.joined(separator: ", ")
  }
}

extension Explanation {
  mutating func explainBatch(_ batch: BatchCall) {
    let policy = batch.route.policy
    add(
      "batch",
      "\(batch.places.count) items of at most \(batch.policy.maxItems), \(batch.calls.count) records; "
        + "items that are not recorded yet are sent as one batch")
    guard let first = batch.calls.first else { return }
    explainDigests(first)
    add(
      "fingerprint",
      "of each item and of what stands around the items, by recipe \(policy.recipe.text); of the first item "
        + String(first.fingerprint.digest.text.prefix(16)))
    let records = batch.places.enumerated().map { Self.shown($1, at: $0, of: batch) }
    // The backend gets no Idempotency-Request-Id, since a request has several.
    explainRecords(records, policy, name: nil)
  }

  private static func shown(_ place: Int?, at index: Int, of batch: BatchCall) -> String {
    guard let place else {
      return "item \(index): refused, since an earlier item has its key and another payload"
    }
    let call = batch.calls[place]
    let isRepeated = batch.items[place] != index
    return "item \(index): key \(shown(call.key)), \(call.id.text)"
      + (isRepeated ? ", with item \(batch.items[place])" : "")
  }
}

// Preflights, as `RequestRunner.preflighted` takes them.
extension Explanation {
  /// Explains a browser's preflight, which is never protected; false for any other request.
  mutating func explainPreflight(
    _ head: MessageHead, _ target: RequestTarget, _ host: RequestHost?
  ) throws(Problem) -> Bool {
    guard head.method == .options, body.readableBytes == 0, let preflight = table.preflight(head) else {
      return false
    }
    let inquiry = OutcomeInquiry.response(
      to: preflight, head: head, target: target, host: host, routes: table)
    guard inquiry == nil else {
      add("response", "Semel itself responds: it is the preflight of a question for an earlier outcome")
      return true
    }
    let choice = table.choice(
      for: preflight, head: head, host: host?.name ?? ByteBuffer(), path: target.path)
    add("preflight", "it announces \(announced(by: preflight, choice.announced?.policy))")
    guard let upstream = choice.route?.policy.upstream ?? settings.onlyUpstream else { throw .noRoute }
    add("passed", "to \(upstream.name), \(upstream.address), streamed both ways and not recorded")
    if let policy = choice.announced?.policy, let cors = policy.cors {
      let origins =
        cors.origins.isEmpty ? "the origins that the backend allows" : cors.origins.joined(separator: ", ")
      add("cors", "\(policy.name) adds the fields of a request with a key, for pages of \(origins)")
    }
    return true
  }

  private func announced(by preflight: Preflight, _ policy: RoutePolicy?) -> String {
    let method = String(buffer: preflight.method)
    guard let policy else { return "\(method), which no route takes" }
    return "\(method), which \(policy.name) takes"
  }
}
