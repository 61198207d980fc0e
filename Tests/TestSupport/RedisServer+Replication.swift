/// A place in the stream of changes that a master has begun.
private struct ReplicationPlace {
  var history: String
  var offset: Int
}

extension RedisServer {
  /// Waits until replicas have every change that this master has made by now.
  ///
  /// It compares what the servers state about themselves. `WAIT` would prove nothing here: it covers the changes of the
  /// connection that sends it, and each `command` has a connection of its own.
  package func awaitCopies(at replicas: [RedisServer]) async throws {
    precondition(!replicas.isEmpty, "RedisServer: no replicas")
    let giveUp = ContinuousClock.now + .seconds(30)
    var wanted: ReplicationPlace?
    var left = replicas
    repeat {
      // Without a reply it is queried again: a failover cuts connections.
      wanted = wanted ?? place(by: "master_repl_offset")
      if let wanted {
        left.removeAll { $0.has(wanted) }
        if left.isEmpty { return }
      }
      try await Task.sleep(for: .milliseconds(20))
    } while ContinuousClock.now < giveUp
    throw TestFailure("not within 30 s: \(left.count) replicas have what their master has")
  }

  /// Whether it follows the master of this stream, and has executed its changes up to this place.
  private func has(_ wanted: ReplicationPlace) -> Bool {
    guard let own = place(by: "slave_repl_offset") else { return false }
    return own.history == wanted.history && own.offset >= wanted.offset
  }

  /// The place that a member of `INFO replication` states; `nil` without a reply or without this member.
  private func place(by member: String) -> ReplicationPlace? {
    guard let text = try? command(["INFO", "replication"]) else { return nil }
    var members: [Substring: Substring] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      guard let colon = line.firstIndex(of: ":") else { continue }
      members[line[..<colon]] = line[line.index(after: colon)...]
    }
    guard let history = members["master_replid"], let offset = members[member[...]].flatMap({ Int($0) })
    else { return nil }
    return ReplicationPlace(history: String(history), offset: offset)
  }
}
