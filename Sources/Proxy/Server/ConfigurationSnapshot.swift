import Idempotency
import Telemetry
import Wire

/// The part of the configuration that may change while the proxy runs: made whole, never changed, replaced by the next.
///
/// Each event loop holds one and swaps it between two of its turns. A delivery keeps the one under which it began.
public final class ConfigurationSnapshot: Sendable {
  let routes: RouteTable
  /// The upstream of requests that no route names; `nil` if there are several upstreams.
  let fallback: UpstreamSettings?
  let limits: LimitSettings
  let accessLog: AccessLog
  let trustedProxies: TrustedProxies
  let unmatchedKeys: UnmatchedKeys
  /// Whether request fields with an underscore in their names go to backends.
  let passesUnderscores: Bool
  /// The policy that clients may read; `nil` if it is hidden.
  let policy: PolicyDocument?
  /// The verification of tokens; `nil` if no caller is known by them.
  let tokens: (any TokenVerifier)?

  public init(
    routes: RouteTable, fallback: UpstreamSettings?, limits: LimitSettings, accessLog: AccessLog,
    trustedProxies: TrustedProxies, unmatchedKeys: UnmatchedKeys, passesUnderscores: Bool,
    policy: PolicyDocument? = nil, tokens: (any TokenVerifier)? = nil
  ) {
    self.routes = routes
    self.fallback = fallback
    self.limits = limits
    self.accessLog = accessLog
    self.trustedProxies = trustedProxies
    self.unmatchedKeys = unmatchedKeys
    self.passesUnderscores = passesUnderscores
    self.policy = policy
    self.tokens = tokens
  }
}
