/// The Sentinels of one master. The world decides when they take the master for dead.
package final class SimSentinels {
  package let name: String
  package let sentinels: [SimRedisServer]
  package private(set) var master: SimRedisServer
  /// The master and all its replicas.
  package let members: [SimRedisServer]

  /// - Parameters:
  ///   - sentinels: Servers that have no other use.
  ///   - members: The master first, and then its replicas, whose links exist.
  package init(name: String, sentinels: [SimRedisServer], members: [SimRedisServer]) {
    self.name = name
    self.sentinels = sentinels
    self.members = members
    master = members[0]
    for sentinel in sentinels { sentinel.monitored = [name: members[0].settings.address] }
  }

  /// Promotes the replica that has the most of the stream, and returns it; `nil` if none runs.
  ///
  /// Its connections are ended, as Sentinel does. The other replicas, and the former master as soon as it can be
  /// reached, follow after `reconfigure`.
  ///
  /// - Parameter isReachable: Whether the Sentinels reach a server.
  package func failOver(isReachable: (SimRedisServer) -> Bool = { _ in true }) -> SimRedisServer? {
    let candidates = members.filter { $0 !== master && !$0.isMaster && $0.isActive && isReachable($0) }
    guard let next = candidates.max(by: { $0.place < $1.place }) else { return nil }
    let former = master
    next.promote()
    next.endConnections()
    master = next
    let (old, new) = (former.settings.address, next.settings.address)
    let news = "\(name) \(old.host) \(old.port) \(new.host) \(new.port)"
    for sentinel in sentinels where sentinel.isActive {
      sentinel.monitored?[name] = new
      sentinel.deliver(Bytes(news.utf8), to: Bytes("+switch-master".utf8))
    }
    return next
  }

  /// Makes a server follow the present master, and returns the link, which is down; `nil` if it does already.
  package func reconfigure(_ server: SimRedisServer) -> SimReplicationLink? {
    guard server !== master, server.isActive, server.upstream?.master !== master else { return nil }
    let link = SimReplicationLink(from: server, to: master)
    server.endConnections()
    return link
  }
}
