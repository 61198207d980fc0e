/// The server whose behaviour and words are simulated.
package enum SimRedisVersion: String, CaseIterable, Sendable {
  case redis6 = "6.2.5"
  case redis7 = "7.0.15"
  case valkey9 = "9.1.2"

  /// The version in `INFO server`. Valkey states that of the Redis with which it is compatible.
  var info: String { self == .valkey9 ? "7.2.4" : rawValue }

  /// Whether `WAIT` waits for the last write of the connection, and not for all that the server had written when the
  /// connection's last command ended.
  var waitsForOwnWrite: Bool { self == .valkey9 }
}

/// The replies that the versions word differently.
extension SimRedisVersion {
  func unknownCommand(_ words: [Bytes]) -> RESPReply {
    var text =
      "ERR unknown command \(quoted(words[0], limit: self == .redis6 ? .max : 128)), with args beginning with: "
    var left = 128
    for word in words.dropFirst() where left > 0 {
      let part = quoted(word, limit: left) + (self == .redis6 ? ", " : " ")
      text += part
      left -= part.utf8.count
    }
    return .error(text.oneLine)
  }

  private func quoted(_ word: Bytes, limit: Int) -> String {
    // A byte of 0 ends a text there.
    let text = String(decoding: word.prefix(limit).prefix { $0 != 0 }, as: UTF8.self)
    return self == .redis6 ? "`\(text)`" : "'\(text)'"
  }

  static func wrongArity(_ name: String) -> RESPReply {
    .error("ERR wrong number of arguments for '\(name)' command")
  }

  func invalidExpire(_ name: String) -> RESPReply {
    .error(
      self == .redis6 ? "ERR invalid expire time in \(name)" : "ERR invalid expire time in '\(name)' command")
  }

  /// The reply to a subcommand that has another number of arguments.
  func wrongArity(_ name: String, _ subcommand: Bytes) -> RESPReply {
    let text = String(decoding: subcommand, as: UTF8.self)
    return self == .redis6
      ? unknownSubcommand(name, subcommand) : Self.wrongArity("\(name)|\(text.lowercased())")
  }

  func unknownSubcommand(_ name: String, _ subcommand: Bytes) -> RESPReply {
    let text = String(decoding: subcommand, as: UTF8.self)
    let what = self == .redis6 ? "Unknown subcommand or wrong number of arguments for" : "unknown subcommand"
    return .error("ERR \(what) '\(text)'. Try \(name.uppercased()) HELP.")
  }

  var noScript: RESPReply {
    .error("NOSCRIPT No matching script." + (self == .valkey9 ? "" : " Please use EVAL."))
  }

  var loading: RESPReply {
    .error("LOADING \(self == .valkey9 ? "Valkey" : "Redis") is loading the dataset in memory")
  }

  func subscribed(_ name: String) -> RESPReply {
    let only = self == .redis6 ? "(P)SUBSCRIBE / (P)UNSUBSCRIBE" : "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE"
    return .error(
      "ERR Can't execute '\(name)': only \(only) / PING / QUIT / RESET are allowed in this context")
  }

  /// The reply to `WAIT` or `WAITAOF` of a replica.
  func cannotWait(_ name: String) -> RESPReply {
    let since = self == .valkey9 ? "if" : "since Redis 4.0 if"
    return .error(
      "ERR \(name) cannot be used with replica instances. Please also note that \(since) a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated."
    )
  }
}

/// The errors of commands in scripts.
extension SimRedisVersion {
  enum ScriptFault { case noArguments, badArgument, unknown, arity, notAllowed, foreignKey }

  func text(of fault: ScriptFault) -> String {
    switch self {
    case .redis6:
      switch fault {
      case .noArguments: "Please specify at least one argument for redis.call()"
      case .badArgument: "Lua redis() command arguments must be strings or integers"
      case .unknown: "Unknown Redis command called from Lua script"
      case .arity: "Wrong number of args calling Redis command From Lua script"
      case .notAllowed: "This Redis command is not allowed from scripts"
      case .foreignKey: "Lua script attempted to access a non local key in a cluster node"
      }
    case .redis7:
      switch fault {
      case .noArguments: "ERR Please specify at least one argument for this redis lib call"
      case .badArgument: "ERR Lua redis lib command arguments must be strings or integers"
      case .unknown: "ERR Unknown Redis command called from script"
      case .arity: "ERR Wrong number of args calling Redis command from script"
      case .notAllowed: "ERR This Redis command is not allowed from script"
      case .foreignKey: "ERR Script attempted to access a non local key in a cluster node"
      }
    case .valkey9:
      switch fault {
      case .noArguments: "ERR Please specify at least one argument for this call"
      case .badArgument: "ERR Command arguments must be strings or integers"
      case .unknown: "ERR Unknown command called from script"
      case .arity: "ERR Wrong number of args calling command from script"
      case .notAllowed: "ERR This Valkey command is not allowed from script"
      case .foreignKey: "ERR Attempted to access a non local key in a cluster node"
      }
    }
  }

  /// The error of a script that has failed.
  ///
  /// - Parameters:
  ///   - digest: The script's digest.
  ///   - error: The error that was raised.
  func scriptError(_ digest: String, _ error: LuaError) -> String {
    let place = error.source.map { "\($0):\(error.line)" }
    switch self {
    case .redis6:
      let text = place.map { "\($0): \(error.text)" } ?? error.text
      return "ERR Error running script (call to f_\(digest)): \(text)".oneLine
    case .redis7, .valkey9:
      let text = error.isCoded ? error.text : "ERR " + error.text
      guard let place else { return self == .redis7 ? "\(text) script: \(digest)." : text }
      return self == .redis7 ? "\(text) script: \(digest), on \(place)." : "\(text) script: on \(place)."
    }
  }
}

extension String {
  /// The text without its last line's end, and with spaces in the place of others.
  var oneLine: String {
    var bytes = Bytes(utf8)
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
    return String(decoding: bytes.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }, as: UTF8.self)
  }
}
