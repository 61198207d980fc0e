/// The rights that Semel's user of Redis needs, each with a harmless command that tries it. Pure.
struct RedisRights {
  /// One right in the words of an ACL, such as `+get`, and the command that tries it.
  struct Right: Equatable {
    var rule: String
    var command: [String]
    /// Whether Semel works without the right.
    var isOptional = false

    /// The rule that would allow the command, by the server's error, if that is about rights. These are checked first.
    func missingRule(by error: String, _ namespace: String) -> String? {
      guard error.hasPrefix("NOPERM") else { return nil }
      let isAboutKeys = error.contains("keys") || error.contains("access a key")
      // The command has a right of its own.
      if rule.hasPrefix("~"), !isAboutKeys { return nil }
      if error.contains("channel") { return "&\(namespace):*" }
      return isAboutKeys && rule.hasPrefix("+") ? "~\(namespace):*" : rule
    }
  }

  let all: [Right]
  private let namespace: String
  private let user: String

  /// - Parameter tag: The hash tag of the keys that are tried, none of which a running Semel uses, since they are
  ///   deleted.
  init(
    namespace: String, user: String?, topology: RedisEndpointSettings.Topology, demand: ReplicaDemand? = nil,
    tag: String = "check"
  ) {
    self.namespace = namespace
    self.user = user ?? "default"
    // Last, since a subscribed connection takes no other commands.
    all =
      Self.commands("\(namespace):{\(tag)}:check", namespace, topology, demand) + [
        Right(rule: "+subscribe", command: ["SUBSCRIBE", "\(namespace):{check}"]),
        Right(rule: "+unsubscribe", command: ["UNSUBSCRIBE", "\(namespace):{check}"]),
      ]
  }

  private static func commands(
    _ key: String, _ namespace: String, _ topology: RedisEndpointSettings.Topology, _ demand: ReplicaDemand?
  ) -> [Right] {
    let hash = key + ":hash"
    let index = key + ":index"
    var all = [
      Right(rule: "+ping", command: ["PING"]), Right(rule: "+select", command: ["SELECT", "0"]),
      Right(rule: "+client|setname", command: ["CLIENT", "SETNAME", "semel"], isOptional: true),
      Right(rule: "+time", command: ["TIME"]),
      Right(rule: "+script|load", command: ["SCRIPT", "LOAD", "return 1"]),
      Right(rule: "+eval", command: ["EVAL", "return 1", "1", key]),
      Right(rule: "+evalsha", command: ["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", key]),
      Right(rule: "+get", command: ["GET", key]),
      Right(rule: "+set", command: ["SET", key, "1", "PX", "1000"]),
      Right(rule: "+pexpire", command: ["PEXPIRE", key, "1000"]),
      Right(rule: "+getrange", command: ["GETRANGE", key, "0", "0"]),
      Right(rule: "+strlen", command: ["STRLEN", key]),
      Right(rule: "+del", command: ["DEL", key]), Right(rule: "+scan", command: ["SCAN", "0", "COUNT", "1"]),
      Right(rule: "+hget", command: ["HGET", hash, "f"]),
      Right(rule: "+hgetall", command: ["HGETALL", hash]),
      Right(rule: "+hsetnx", command: ["HSETNX", hash, "f", "1"]),
      Right(rule: "+hset", command: ["HSET", hash, "f", "1"]), Right(rule: "+del", command: ["DEL", hash]),
      Right(rule: "+zadd", command: ["ZADD", index, "1", "a"], isOptional: true),
      Right(rule: "+zcount", command: ["ZCOUNT", index, "0", "1"], isOptional: true),
      Right(rule: "+zrangebyscore", command: ["ZRANGEBYSCORE", index, "0", "1"], isOptional: true),
      Right(rule: "+zrem", command: ["ZREM", index, "a"], isOptional: true),
      Right(rule: "+del", command: ["DEL", index]),
      Right(rule: "+dbsize", command: ["DBSIZE"], isOptional: true),
      Right(rule: directory, command: ["HGET", "semel:namespaces", namespace], isOptional: true),
      Right(rule: "+info", command: ["INFO", "server"], isOptional: true),
      Right(rule: "+publish", command: ["PUBLISH", "\(namespace):invalidate", ""], isOptional: true),
    ]
    if let demand {
      all.append(Right(rule: "+client|id", command: ["CLIENT", "ID"], isOptional: true))
      all.append(Right(rule: "+\(demand.command.lowercased())", command: demand.trial))
    }
    adapt(&all, to: topology)
    return all
  }

  private static let directory = "~semel:namespaces"

  private static func adapt(_ all: inout [Right], to topology: RedisEndpointSettings.Topology) {
    switch topology {
    case .standalone: break
    case .sentinel: all.append(Right(rule: "+role", command: ["ROLE"]))
    case .cluster:
      all.removeAll { $0.rule == "+select" }
      all += [
        Right(rule: "+cluster|slots", command: ["CLUSTER", "SLOTS"]),
        Right(rule: "+asking", command: ["ASKING"]),
      ]
    }
  }

  /// The rights of a claim, by harmless forms of its commands on a key that does not exist. An inspection tries them: a
  /// claim's script fails with a text that each version of Redis words in another way.
  ///
  /// - Parameter digest: The digest of the script of a claim, which ends at once because its deadline is over.
  static func ofClaims(key: String, digest: String) -> [Right] {
    [
      Right(rule: "+evalsha", command: ["EVALSHA", digest, "1", key, "", "0"]),
      Right(rule: "+eval", command: ["EVAL", "return 1", "1", key]), Right(rule: "+time", command: ["TIME"]),
      Right(rule: "+get", command: ["GET", key]),
      Right(rule: "+set", command: ["SET", key, "", "XX", "PX", "1"]),
    ]
  }

  var line: String {
    var rules: [String] = []
    for right in all where right.rule.hasPrefix("+") && !rules.contains(right.rule) {
      rules.append(right.rule)
    }
    let name = user == "default" ? "semel" : user
    return "user \(name) on >PASSWORD resetkeys resetchannels -@all ~\(namespace):* \(Self.directory) "
      + "&\(namespace):* " + rules.joined(separator: " ")
  }

  /// The rights that are missing by the replies to the commands, in their order.
  func missing(by replies: [RedisValue]) -> [(rule: String, isOptional: Bool)] {
    var found: [(rule: String, isOptional: Bool)] = []
    for (right, reply) in zip(all, replies) {
      guard let rule = reply.error.flatMap({ right.missingRule(by: $0, namespace) }) else { continue }
      if !found.contains(where: { $0.rule == rule }) { found.append((rule, right.isOptional)) }
    }
    return found
  }
}
