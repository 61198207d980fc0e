import Idempotency
import Wire

extension Settings {
  /// All settings as JSON for an operator. Of a secret, it reveals only that it is set.
  public var shownJSON: String { shown.json }

  var shown: Shown {
    [
      "listen": .list(listen.map(\.shown)),
      "admin": admin?.shown,
      "workers": .number(workers),
      "drain_delay": .span(drainDelay),
      "shutdown_grace": .span(shutdownGrace),
      "trusted_proxies": .texts(trustedProxies.texts),
      "unmatched_keys": .word(unmatchedKeys),
      "underscores": .word(underscores),
      "upstreams": .members(
        upstreams.sorted { $0.key < $1.key }.map { Shown.Member($0.key, $0.value.shown) }),
      "store": store.shown,
      "limits": limits.shown,
      "log": log.shown,
      "tracing": tracing?.shown,
      "jwt": jwt?.shown,
      "readiness": .word(readiness),
      "policy_document": .word(policyDocument),
      "allow_identity_change": .flag(allowsIdentityChange),
      "routes": .list(routes.map(\.shown)),
      "warnings": .texts(warnings.map(\.description)),
    ]
  }
}

extension TrustedProxies {
  /// The elements in the notation of `trusted_proxies`.
  fileprivate var texts: [String] { blocks.map(\.text) + (includesUnixSockets ? ["unix"] : []) }
}

extension AddressBlock {
  fileprivate var text: String {
    guard prefix < 128 else { return first.text }
    return "\(first.text)/\(first.isIPv4 && prefix >= 96 ? prefix - 96 : prefix)"
  }
}
