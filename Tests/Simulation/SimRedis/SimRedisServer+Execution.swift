/// The checks before a command, in Redis' order, and its execution.
extension SimRedisServer {
  static let outOfMemory = RESPReply.error("OOM command not allowed when used memory > 'maxmemory'.")
  static let readOnly = RESPReply.error("READONLY You can't write against a read only replica.")
  static let tooFewReplicas = RESPReply.error("NOREPLICAS Not enough good replicas to write.")
  static let wrongType = RESPReply.error(
    "WRONGTYPE Operation against a key holding the wrong kind of value")
  static let notInteger = RESPReply.error("ERR value is not an integer or out of range")
  static let syntax = RESPReply.error("ERR syntax error")
  static let staleData = RESPReply.error(
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")

  /// Executes a command of a connection, or refuses it.
  func perform(_ call: SimCall) -> RESPReply {
    guard let command = lookUp(call.words[0]) else { return version.unknownCommand(call.words) }
    defer { if command.name != "asking" { call.client.isAsking = false } }
    guard command.takes(call.words.count, version) else { return SimRedisVersion.wrongArity(command.name) }
    switch command.subcommandFault(of: call.words, version) {
    case .unknown?: return version.unknownSubcommand(command.name, call.words[1])
    case .arity?: return version.wrongArity(command.name, call.words[1])
    case nil: break
    }
    if let refusal = refusal(of: command, call) { return refusal }
    let before = log.end
    let reply = command.run(self, call)
    commitChanges(in: call.client.database)
    if !version.waitsForOwnWrite || log.end != before { call.client.lastWrite = log.end }
    return reply
  }

  /// The command of a name, in any case of letters; `nil` if this server has none.
  func lookUp(_ word: Bytes) -> SimCommand? {
    guard word.count <= 16 else { return nil }
    let name = String(decoding: word.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
    guard let command = SimCommand.all[name], command.versions.contains(version) else { return nil }
    let isSentinel = monitored != nil
    if name == "sentinel" { return isSentinel ? command : nil }
    return isSentinel && !command.flags.contains(.sentinel) ? nil : command
  }

  private func refusal(of command: SimCommand, _ call: SimCall) -> RESPReply? {
    let flags = command.flags
    if !call.client.isAuthenticated, !flags.contains(.withoutLogin) {
      return .error("NOAUTH Authentication required.")
    }
    if let slots, let refusal = redirection(of: command, call, in: slots) { return refusal }
    evict(at: call.time)
    if isOutOfMemory, isMaster, flags.contains(.grows) { return Self.outOfMemory }
    if let fault = diskError, isMaster, flags.contains(.write) || command.name == "ping" { return fault }
    if flags.contains(.write) {
      if hasTooFewReplicas(at: call.now) { return Self.tooFewReplicas }
      if !isMaster { return Self.readOnly }
    }
    if !call.client.channels.isEmpty, !flags.contains(.subscribed) {
      return version.subscribed(command.fullName(of: call.words, version))
    }
    if servesNothingStale, !allowsStale(command, call) { return Self.staleData }
    if isLoading, !flags.contains(.loading) { return version.loading }
    return nil
  }

  private func allowsStale(_ command: SimCommand, _ call: SimCall) -> Bool {
    if command.name == "ping" { return version == .redis6 }
    // The scripts may be loaded from Redis 7 on.
    if command.name == "script" { return version != .redis6 }
    return command.flags.contains(.stale)
  }

  /// Whether it may serve nothing, because its master is not connected.
  var servesNothingStale: Bool {
    !isMaster && !settings.servesStaleData && upstream?.isUp != true
  }

  var diskError: RESPReply? {
    guard let diskFault, settings.appendOnly != nil else { return nil }
    return .error("MISCONF Errors writing to the AOF file: \(diskFault)")
  }

  func hasTooFewReplicas(at now: Int64) -> Bool {
    isMaster && minReplicas > 0 && goodReplicaCount(at: now) < minReplicas
  }

  func goodReplicaCount(at now: Int64) -> Int {
    replicas.count { $0.isUp && now - $0.confirmedAt <= settings.maxReplicaLag * 1_000_000 }
  }
}

/// Its memory.
extension SimRedisServer {
  /// The bytes that an empty server takes.
  static let baseMemory = 1 << 20

  package var usedMemory: Int { Self.baseMemory + databases.reduce(0) { $0 + $1.size } }

  var isOutOfMemory: Bool { maxMemory.map { usedMemory > $0 } ?? false }

  /// Removes keys until the memory suffices, if the server does so at all.
  func evict(at time: Int64) {
    guard isOutOfMemory, settings.eviction != .none, isMaster, script == nil else { return }
    for database in databases.indices {
      var keys = databases[database].sortedKeys.filter {
        settings.eviction == .all || databases[database][$0]?.expiresAt != nil
      }
      while isOutOfMemory, !keys.isEmpty {
        let index = Int(random.next() % UInt64(keys.count))
        change(.delete(keys.remove(at: index)), in: database)
        evictedCount += 1
      }
      commitChanges(in: database)
    }
  }
}
