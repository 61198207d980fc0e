/// The lost connections of one event loop over which claims without a script were on their way, by the server's run.
/// Confined to its loop.
///
/// One is known until Redis has confirmed its end: the connection over which that was requested may be lost as well.
final class RedisSessions {
  /// The maximum number, of which the oldest are forgotten: more than a cluster has masters.
  private static let maxCount = 4096

  private var lost: [RedisSession] = []

  /// Takes a connection that was lost.
  func left(_ session: RedisSession) {
    lost.append(session)
    if lost.count > Self.maxCount { lost.removeFirst() }
  }

  /// The connections to a server's run that have to be ended.
  func open(at run: String) -> [Int64] { lost.filter { $0.run == run }.map(\.client) }

  /// Takes the end of a connection.
  func ended(_ session: RedisSession) { lost.removeAll { $0 == session } }

  /// Whether there is a connection that has to be ended.
  var areOpen: Bool { !lost.isEmpty }
}
