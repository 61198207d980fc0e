import Idempotency

/// The meaning of Redis' errors, and the advice for the operator.
enum RedisRefusal {
  /// Whether Redis does not have the script, in which case it has not run it.
  static func isScriptMissing(_ text: String) -> Bool { text.hasPrefix("NOSCRIPT") }

  static func isPassing(_ text: String) -> Bool { !text.hasPrefix("NOPERM") && !text.hasPrefix("ERR ") }

  /// Whether the server refuses the connection, in the place of the reply to any command.
  static func isOfConnection(_ text: String) -> Bool {
    text.hasPrefix("ERR max number of clients") || text.hasPrefix("DENIED ")
  }

  static func isDemotion(_ text: String) -> Bool { has("READONLY", text) }

  /// Returns the error of a command that Redis refused and that has changed nothing. One that Redis forbids or fails in
  /// may concern a recorded outcome: that opens no route.
  static func error(_ text: String) -> StoreError {
    if has("WRONGTYPE", text) { return .unreadable("the record's key holds something else: \(text)") }
    let hasFailed = text.hasPrefix("ERR ") && obstacle(text) == nil && !isOfConnection(text)
    return hasFailed || has("NOPERM", text) ? .refused(advice(text)) : .unavailable(advice(text))
  }

  /// The reason, with advice, for which a server takes no changes at present, whoever makes them.
  static func obstacle(_ text: String) -> String? {
    ["OOM", "MISCONF", "NOREPLICAS", "READONLY", "MASTERDOWN"].contains { has($0, text) } ? advice(text) : nil
  }

  static func advice(_ text: String) -> String {
    for (code, advice) in advices where has(code, text) { return "\(advice) (\(text))" }
    return "Redis refused the command (\(text))"
  }

  /// Whether the error has this code, which Redis 6.2 puts behind the position in a script.
  private static func has(_ code: String, _ text: String) -> Bool {
    text.hasPrefix(code + " ") || text.hasPrefix("ERR Error running script") && text.contains("-\(code) ")
      || text == code
  }

  private static let advices = [
    (
      "ERR unknown command 'WAITAOF',",
      "this server has no WAITAOF, which Redis has from 7.2 on: take durable: waitaof out of the store's settings"
    ),
    (
      "ERR unknown command `WAITAOF`,",
      "this server has no WAITAOF, which Redis has from 7.2 on: take durable: waitaof out of the store's settings"
    ),
    (
      "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
      "durable: waitaof needs a Redis with a file: set appendonly yes"
    ),
    ("ERR WAIT", "this Redis is a replica, which cannot wait for replicas of its own"),
    (
      "NOAUTH",
      "Redis wants a login: give user and password in the store's url, or username and password_file (for Sentinels, those of store.sentinel)"
    ),
    ("WRONGPASS", "Redis knows no such user and password: correct them in the store's url or password_file"),
    ("ERR AUTH", "Redis has no password, or knows no such user: correct them in the store's url"),
    ("NOPERM", "Redis forbids a command to Semel's user: widen its ACL"),
    (
      "ERR max number of clients reached", "Redis has no connection left: raise its maxclients, or close some"
    ),
    ("DENIED", "Redis is in protected mode, and refuses clients from other machines: give it a password"),
    ("LOADING", "Redis is reading its data from disk: wait until it is ready"),
    ("BUSY", "Redis is held up by somebody's script: end it with SCRIPT KILL"),
    ("MASTERDOWN", "this Redis is a replica that has lost its master: point the store's url at the master"),
    ("READONLY", "this Redis is a read-only replica: point the store's url at the master"),
    ("OOM", "Redis has no memory left: raise its maxmemory, or keep responses for less long"),
    ("MISCONF", "Redis cannot write to its disk and takes no changes: see its log"),
    ("NOREPLICAS", "Redis has too few replicas to take changes: see min-replicas-to-write"),
    ("MOVED", "this Redis is part of a cluster: the store's topology must say so"),
    ("CLUSTERDOWN", "this Redis is part of a cluster that is down"),
  ]
}
