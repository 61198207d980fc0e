/// The commands that wait for copies.
extension SimRedisServer {
  func wait(_ call: SimCall) -> RESPReply {
    guard isMaster else { return version.cannotWait("WAIT") }
    guard let replicas = strictInteger(call.words[1]) else { return Self.notInteger }
    return timeout(call.words[2], of: call) { timeout in
      begin(
        SimClient.Wait(
          replicas: Int(clamping: replicas), local: nil, place: call.client.lastWrite,
          deadline: deadline(timeout, call)),
        call)
    }
  }

  func waitForDisks(_ call: SimCall) -> RESPReply {
    guard let local = strictInteger(call.words[1]) else { return Self.notInteger }
    guard 0...1 ~= local else { return .error("ERR value is out of range, value must between 0 and 1") }
    guard let replicas = strictInteger(call.words[2]) else { return Self.notInteger }
    guard replicas >= 0 else { return .error("ERR value is out of range, must be positive") }
    return timeout(call.words[3], of: call) { timeout in
      guard isMaster else { return version.cannotWait("WAITAOF") }
      guard local == 0 || settings.appendOnly != nil else {
        return .error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
      }
      return begin(
        SimClient.Wait(
          replicas: Int(clamping: replicas), local: local == 1, place: call.client.lastWrite,
          deadline: deadline(timeout, call)),
        call)
    }
  }

  private func timeout(_ word: Bytes, of call: SimCall, _ body: (Int64) -> RESPReply) -> RESPReply {
    guard let timeout = strictInteger(word) else {
      return .error("ERR timeout is not an integer or out of range")
    }
    guard timeout >= 0 else { return .error("ERR timeout is negative") }
    if version == .valkey9, timeout > Int64.max - call.time { return .error("ERR timeout is out of range") }
    return body(timeout)
  }

  private func deadline(_ timeout: Int64, _ call: SimCall) -> Int64? {
    timeout == 0 ? nil : call.time &+ timeout
  }

  private func begin(_ wait: SimClient.Wait, _ call: SimCall) -> RESPReply {
    // In a script nothing waits.
    if isMet(wait) || script != nil { return reply(to: wait) }
    call.client.wait = wait
    return .sequence([])
  }

  /// Replies to the waits that enough copies, or the passing of time, have ended; and goes on with their connections.
  func serveWaits(at now: Int64) {
    let waiting = clients.values.filter { $0.wait != nil }.sorted { $0.id < $1.id }
    let time = clock.milliseconds(at: now)
    for client in waiting {
      guard let wait = client.wait, isMet(wait) || wait.deadline.map({ time >= $0 }) ?? false else {
        continue
      }
      client.wait = nil
      send(reply(to: wait), to: client.id)
      runCommands(of: client, at: now)
    }
  }

  private func copies(_ wait: SimClient.Wait) -> (local: Bool, replicas: Int) {
    let isOnDisk = wait.local != nil
    let count = replicas.count {
      $0.isUp && (isOnDisk ? $0.syncedPlace : $0.confirmedPlace) >= wait.place
    }
    return (settings.appendOnly != nil && disk.syncedEnd >= wait.place, count)
  }

  private func isMet(_ wait: SimClient.Wait) -> Bool {
    let copies = copies(wait)
    return copies.replicas >= wait.replicas && (wait.local != true || copies.local)
  }

  private func reply(to wait: SimClient.Wait) -> RESPReply {
    let copies = copies(wait)
    guard wait.local != nil else { return .integer(Int64(copies.replicas)) }
    return .array([.integer(copies.local ? 1 : 0), .integer(Int64(copies.replicas))])
  }

  /// Ends the connections that wait, because the server is a master no more.
  func endWaits() {
    for client in clients.values.filter({ $0.wait != nil }).sorted(by: { $0.id < $1.id }) {
      send(
        .error(
          "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"),
        to: client.id)
      end(client)
    }
  }
}
