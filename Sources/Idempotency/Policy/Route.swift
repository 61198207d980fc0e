/// One configured route, shared by all of its requests.
package final class Route: Sendable {
  package let policy: RoutePolicy
  /// Its place in the configuration, from 0.
  package let index: Int

  package init(policy: RoutePolicy, index: Int) {
    self.policy = policy
    self.index = index
  }
}
