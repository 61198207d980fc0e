/// One configured route, shared by all of its requests.
public final class Route: Sendable {
  public let policy: RoutePolicy
  /// Its place in the configuration, from 0.
  public let index: Int
  /// What it is counted under: the same for every route of its name, over all configurations of a process.
  public let number: Int

  public init(policy: RoutePolicy, index: Int, number: Int = 0) {
    self.policy = policy
    self.index = index
    self.number = number
  }
}
