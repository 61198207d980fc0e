/// One configured route, shared by all of its requests.
package final class Route: Sendable {
  package let policy: RoutePolicy
  /// Its place in the configuration, from 0.
  package let index: Int
  /// What it is counted under: the same for every route of its name, over all configurations of a process.
  package let number: Int

  package init(policy: RoutePolicy, index: Int, number: Int = 0) {
    self.policy = policy
    self.index = index
    self.number = number
  }
}
