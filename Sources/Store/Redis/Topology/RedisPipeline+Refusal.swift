import Idempotency

extension RedisPipeline {
  /// The result of a copy that this server refused, executing nothing, because another one has the record's key.
  func refusalToMove(_ text: String) -> ScriptReply.Ending? {
    switch settings.topology {
    case .standalone: return nil
    case .sentinel: return RedisRefusal.isDemotion(text) ? .unwritten("the master has become a replica") : nil
    case .cluster:
      guard let refusal = refusal(in: text) else { return nil }
      didRefuse(refusal)
      return .redirected(refusal)
    }
  }

  /// Whether the error says that the master of Sentinel is a replica by now. The connection to it then ends.
  func endsByDemotion(_ text: String) -> Bool {
    guard case .sentinel = settings.topology, RedisRefusal.isDemotion(text) else { return false }
    link.fail("the master has become a replica")
    return true
  }

  /// The redirection in an error of a cluster's node.
  func refusal(in text: String) -> ClusterRefusal? {
    guard settings.topology.isCluster, let address = link.address else { return nil }
    return ClusterRefusal(text, from: address)
  }
}
