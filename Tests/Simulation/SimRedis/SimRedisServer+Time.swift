/// The events that no command causes.
extension SimRedisServer {
  /// The interval of `everysec`, in nanoseconds.
  private static let syncInterval: Int64 = 1_000_000_000

  /// The next time at which `advance` has something to do; `nil` if there is none.
  package func nextEvent(after now: Int64) -> Int64? {
    guard isActive else { return nil }
    var next: Int64?
    for client in clients.values {
      guard let deadline = client.wait?.deadline else { continue }
      next = min(next ?? .max, clock.reach(deadline, from: now))
    }
    if settings.appendOnly == .everysec, !disk.unsynced.isEmpty {
      next = min(next ?? .max, max(disk.syncedAt + Self.syncInterval, now))
    }
    return next
  }

  /// Takes the passing of time: syncs the file, and ends the waits whose time is over.
  package func advance(to now: Int64) {
    guard isActive else { return }
    if settings.appendOnly == .everysec, now >= disk.syncedAt + Self.syncInterval {
      sync()
      disk.syncedAt = now
    }
    serveWaits(at: now)
  }

  /// Removes the keys that have expired, which a server also does when it meets one of them. A replica waits for its
  /// master to do so.
  package func removeExpired(at now: Int64) {
    guard isActive, isMaster else { return }
    let time = clock.milliseconds(at: now)
    for database in databases.indices {
      let gone = databases[database].expired(at: time)
      for key in gone { change(.delete(key), in: database) }
      commitChanges(in: database)
    }
  }

  /// Syncs the file.
  package func sync() {
    let entries = disk.unsynced
    disk.unsynced = []
    for entry in entries {
      for effect in entry.effects { Self.apply(effect, to: &disk.databases[entry.database]) }
    }
    disk.syncedEnd = log.end
  }
}

/// Changes, which go to the database, to the replicas and to the file.
extension SimRedisServer {
  /// Makes a change of the present command.
  func change(_ effect: SimEffect, in database: Int) {
    guard let didChange, effect.isWhole, let key = effect.key else { return make(effect, in: database) }
    let before = databases[database][key]
    make(effect, in: database)
    didChange(key, before, databases[database][key])
  }

  /// Makes a change, whose cause may be none of this server's.
  func make(_ effect: SimEffect, in database: Int) {
    Self.apply(effect, to: &databases[database])
    effects.append(effect)
  }

  /// Passes the changes of a command on.
  func commitChanges(in database: Int) {
    guard !effects.isEmpty else { return }
    record(log.append(effects, database: database))
    effects = []
  }

  /// Takes the changes of the master.
  func take(_ entry: ReplicationEntry) {
    for effect in entry.effects {
      Self.apply(effect, to: &databases[entry.database])
      if case .publish(let channel, let message) = effect { deliver(message, to: channel) }
    }
    log.append(entry)
    record(entry)
  }

  private func record(_ entry: ReplicationEntry) {
    guard let fsync = settings.appendOnly else { return }
    disk.unsynced.append(entry)
    if fsync == .always { sync() }
  }

  static func apply(_ effect: SimEffect, to keyspace: inout Keyspace) {
    switch effect {
    case .set(let key, let entry): keyspace.set(key, entry)
    case .delete(let key): keyspace.remove(key)
    case .expire(let key, let end): keyspace.expire(key, at: end)
    case .setFields(let key, let words):
      var entry = keyspace[key] ?? Keyspace.Entry(value: .hash([]))
      guard case .hash(var fields) = entry.value else { return }
      for place in stride(from: words.startIndex, to: words.endIndex, by: 2) {
        let (field, value) = (words[place], words[place + 1])
        if let index = fields.firstIndex(where: { $0.name == field }) {
          fields[index].value = value
        } else {
          fields.append((field, value))
        }
      }
      entry.value = .hash(fields)
      keyspace.set(key, entry)
    case .setScores(let key, let words):
      var entry = keyspace[key] ?? Keyspace.Entry(value: .sorted([]))
      entry.value.setScores(words)
      keyspace.set(key, entry)
    case .removeMembers(let key, let members):
      guard var entry = keyspace[key] else { return }
      entry.value.removeMembers(members)
      if entry.value == .sorted([]) { keyspace.remove(key) } else { keyspace.set(key, entry) }
    case .publish: break
    }
  }
}

/// Readings for tests and judges, which change nothing.
extension SimRedisServer {
  /// The keys of a database that have not expired, in their order.
  package func keys(in database: Int = 0, at now: Int64) -> [Bytes] {
    let time = clock.milliseconds(at: now)
    return databases[database].sortedKeys.filter { databases[database].live($0, at: time) != nil }
  }

  /// The value and the expiry of a key that has not expired.
  package func entry(_ key: Bytes, in database: Int = 0, at now: Int64) -> Keyspace.Entry? {
    databases[database].live(key, at: clock.milliseconds(at: now))
  }

  /// The number of connections.
  package var connectionCount: Int { clients.count }

  /// The channels that somebody subscribes to, in their order.
  package var subscribedChannels: [Bytes] {
    subscribers.filter { !$0.value.isEmpty }.keys.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The keys that were changed after a place of its history; `nil` if that is not known any more.
  package func changedKeys(after place: Int64) -> Set<Bytes>? {
    log.entries(after: place).map { Set($0.flatMap(\.effects).compactMap(\.key)) }
  }

  /// The keys whose last changes are written and not synced.
  package var unsyncedKeys: Set<Bytes> { Set(disk.unsynced.flatMap(\.effects).compactMap(\.key)) }
}
