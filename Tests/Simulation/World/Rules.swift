/// Semel's settings in a world: so short that leases and waits lapse within seconds. A slow response takes longer than a
/// lease, which has to be renewed meanwhile.
enum Rules {
  struct Time {
    let seconds: Double
    var text: String { "\(Int(seconds * 1000))ms" }
    var span: Span { Span(seconds: seconds) }
  }

  static let lease = Time(seconds: 1)
  /// The lease of the second configuration.
  static let longLease = Time(seconds: 1.4)
  /// So long that a run may be overtaken before its response: after its lease, and `settle`.
  static let responseTimeout = Time(seconds: 4)
  static let settle = Time(seconds: 0.6)
  static let wait = Time(seconds: 1.5)
  /// The maximum time for which an intent may be in flight after the faults: the longest life of a claim.
  static let longestFlight = Time(seconds: 1.4 + 4 + 0.6)
  /// The time after which a claim has certainly been given up, if Redis has not replied.
  static let longestCall = Time(seconds: 1)
  /// The time after which a lease has certainly been renewed, or its renewal has at least been requested.
  static let firstRenewal = Time(seconds: 0.6)
  /// The time to respond on the route whose time-out comes before its leases are renewed, and those leases.
  static let shortTimeout = Time(seconds: 0.5)
  static let shortTimeoutLease = Time(seconds: 2)
  /// The time for which outcomes are remembered where a step of the store's clock is longer.
  static let shortMemory = Time(seconds: 200)
  /// The number of attempts on the route that limits them.
  static let maxAttempts = 3

  /// The number of configurations, between which nodes change.
  static let variants = 2
  static let originPort = 9000

  /// The port of a node.
  static func port(of node: Int) -> Int { 8000 + node }

  /// Whether a connection to a port is one of clients with a node, or one with a server of the store.
  static func isClients(_ port: Int) -> Bool { 8000..<8100 ~= port }
  static func isStores(_ port: Int) -> Bool { 7000..<8000 ~= port }

  /// The store's members in a configuration, where the store is in memory.
  static let store = "{kind: redis, url: 'redis://127.0.0.1', timeout: 250ms}"

  /// - Parameter variant: The second has other leases and waits, connections that do not last, and fingerprints by
  ///   another recipe.
  static func configuration(
    of node: Int, variant: Int, isHTTP2: Bool, store: String, hasShortMemory: Bool = false
  ) -> String {
    let other = variant == 1
    let memory = hasShortMemory ? shortMemory.text : "24h"
    // In Redis, responses of which the record is remembered for more than twice as long have keys of their own. In a
    // short memory they would be gone before a world is over.
    let apart = hasShortMemory ? "190s" : "11h"
    return """
      listen: [{address: '127.0.0.1:\(port(of: node))'}]
      workers: 1
      log: {level: warning, format: text, access: false}
      upstreams:
        shop:
          url: 'http://127.0.0.1:\(originPort)'
          http2: \(isHTTP2 ? "prior_knowledge" : "off")
          connect_timeout: 1s
          response_timeout: \(responseTimeout.text)
          settle: \(settle.text)
          idle_timeout: \(other ? "200ms" : "30s")
      store: \(store)
      defaults:
        caller: {parts: ['header:Authorization']}
        lease: \(other ? longLease.text : lease.text)
        wait_timeout: \(other ? "400ms" : wait.text)
        fingerprint: {headers: \(other ? "[X-Shop]" : "[]")}
        retention: \(memory)
        remember: \(memory)
      routes:
        - {name: hold, match: {path: /hold}, on_unknown: hold}
        - {name: retry, match: {path: /retry}, on_unknown: retry, retention: \(apart)}
        - {name: batch, match: {path: /batch}, on_unknown: hold, batch: {items: /orders, key: /id, results: /results}}
        - {name: repeat, match: {path: /repeat}, retries: {max: 3, backoff: 50ms, max_backoff: 300ms}}
        - {name: quick, match: {path: /quick}, on_unknown: hold, response_timeout: \(shortTimeout.text), lease: \(shortTimeoutLease.text)}
        - {name: capped, match: {path: /capped}, on_unknown: hold, max_attempts: \(maxAttempts), retention: \(apart)}
        - {name: remove, match: {path: /remove}, on_unknown: retry, profile: wunderlist, key: {from: ['header:Idempotency-Key']}}
        - name: ask
          match: {path: /ask}
          on_unknown: reconcile
          reconcile: {path: "/lookup/{request_id}", absent: {json: {/state: absent}}, status: 201}
      """
  }
}

/// A route's policy about unknown outcomes.
enum Rule: String, CaseIterable {
  case hold, retry, `repeat`, ask, batch, capped, quick, remove

  var path: String { "/\(rawValue)" }

  /// The rule of a request's route.
  init?(_ request: HTTPMessage) { self.init(rawValue: String(request.path.dropFirst())) }

  /// Whether a delivery may be sent again after an unknown outcome: at once, or after a statement of the backend's.
  var mayRepeat: Bool { runsAgain || self == .ask }
  /// The time that the backend has for its response.
  var responseTimeout: Rules.Time { self == .quick ? Rules.shortTimeout : Rules.responseTimeout }
  /// The time after a sending in which a rejection deletes its record: before the time-out, and before the lease is
  /// renewed.
  var deletionTime: Rules.Time {
    self == .quick ? Rules.Time(seconds: Rules.shortTimeout.seconds + 0.05) : Rules.firstRenewal
  }
  /// Whether it may then run again, whatever became of it.
  var runsAgain: Bool { self == .retry || self == .remove }
  /// Whether its responses are forgotten long before their records, and have keys of their own in Redis.
  var keepsResponseApart: Bool { self == .retry || self == .capped }
}
