/// The execution of one command.
struct SimCall {
  let words: [Bytes]
  let client: SimClient
  /// The server's clock, in milliseconds since 1970.
  let time: Int64
  /// The world's time, in nanoseconds.
  let now: Int64

  func text(_ index: Int) -> String { String(decoding: words[index], as: UTF8.self) }
}

/// One of the commands that a server has.
struct SimCommand {
  struct Flags: OptionSet {
    let rawValue: Int
    static let write = Flags(rawValue: 1)
    /// It may need more memory.
    static let grows = Flags(rawValue: 2)
    static let notInScripts = Flags(rawValue: 4)
    /// It is allowed at a replica that has lost its master, and may serve nothing stale.
    static let stale = Flags(rawValue: 8)
    static let loading = Flags(rawValue: 16)
    static let withoutLogin = Flags(rawValue: 32)
    static let subscribed = Flags(rawValue: 64)
    static let sentinel = Flags(rawValue: 128)
  }

  /// The places of a command's keys.
  enum Keys { case none, first, all, counted }

  let name: String
  /// The number of words with the command's name; negative for a minimum.
  let arity: Int
  let flags: Flags
  let keys: Keys
  let versions: [SimRedisVersion]
  let run: @Sendable (SimRedisServer, SimCall) -> RESPReply

  init(
    _ name: String, _ arity: Int, _ flags: Flags = [], keys: Keys = .none,
    versions: [SimRedisVersion] = SimRedisVersion.allCases,
    _ run: @escaping @Sendable (SimRedisServer, SimCall) -> RESPReply
  ) {
    self.name = name
    self.arity = arity
    self.flags = flags
    self.keys = keys
    self.versions = versions
    self.run = run
  }

  func takes(_ count: Int, _ version: SimRedisVersion) -> Bool {
    // Its options are of Redis 7.
    Self.takes(name == "pexpire" && version == .redis6 ? 3 : arity, count)
  }

  private static func takes(_ arity: Int, _ count: Int) -> Bool {
    arity < 0 ? count >= -arity : count == arity
  }

  enum SubcommandFault { case unknown, arity }

  /// The subcommands with the numbers of their words, as for commands. From Redis 7 on they are commands of their own.
  private static let subcommands = [
    "client": ["id": 2, "setname": 3], "cluster": ["slots": 2], "script": ["load": 3],
    "sentinel": ["get-master-addr-by-name": 3],
  ]

  private func subcommand(of words: [Bytes], _ version: SimRedisVersion) -> (name: String, arity: Int?)? {
    guard version != .redis6, let own = Self.subcommands[name] else { return nil }
    let subcommand = String(decoding: words[1], as: UTF8.self).lowercased()
    return (subcommand, own[subcommand])
  }

  /// The reason for which a subcommand is not looked at any further; `nil` if there is none.
  func subcommandFault(of words: [Bytes], _ version: SimRedisVersion) -> SubcommandFault? {
    guard let subcommand = subcommand(of: words, version) else { return nil }
    guard let arity = subcommand.arity else { return .unknown }
    return Self.takes(arity, words.count) ? nil : .arity
  }

  /// The name with that of a subcommand, if that is a command of its own.
  func fullName(of words: [Bytes], _ version: SimRedisVersion) -> String {
    subcommand(of: words, version).map { "\(name)|\($0.name)" } ?? name
  }

  func keys(of words: [Bytes]) -> ArraySlice<Bytes> {
    switch keys {
    case .none: return []
    case .first: return words[1...1]
    case .all: return words[1...]
    case .counted:
      guard let count = strictInteger(words[2]), 0...Int64(words.count - 3) ~= count else { return [] }
      return words[3..<(3 + Int(count))]
    }
  }
}

extension SimCommand {
  /// The commands that Semel sends, by their names. Any other one is unknown.
  static let all: [String: SimCommand] = {
    let all = connection + texts + hashes + sortedSets + scripts + messages + server
    return Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
  }()

  private static let connection = [
    SimCommand("ping", -1, [.loading, .subscribed, .sentinel]) { $0.ping($1) },
    SimCommand("auth", -2, [.notInScripts, .loading, .stale, .withoutLogin, .sentinel]) {
      $0.authenticate($1)
    },
    SimCommand("select", 2, [.loading, .stale]) { $0.select($1) },
    SimCommand("client", -2, [.notInScripts, .loading, .stale, .sentinel]) { $0.client($1) },
    SimCommand("asking", 1, [.notInScripts]) { $0.asking($1) },
    SimCommand("wait", 3, [.notInScripts]) { $0.wait($1) },
    SimCommand("waitaof", 4, [.notInScripts], versions: [.valkey9]) { $0.waitForDisks($1) },
  ]

  private static let texts = [
    SimCommand("get", 2, keys: .first) { $0.get($1) },
    SimCommand("set", -3, [.write, .grows], keys: .first) { $0.set($1) },
    SimCommand("strlen", 2, keys: .first) { $0.length($1) },
    SimCommand("getrange", 4, keys: .first) { $0.range($1) },
    SimCommand("del", -2, [.write], keys: .all) { $0.delete($1) },
    SimCommand("pexpire", -3, [.write], keys: .first) { $0.expire($1) },
    SimCommand("scan", -2) { $0.scan($1) },
    SimCommand("dbsize", 1) { $0.size($1) },
  ]

  private static let hashes = [
    SimCommand("hget", 3, keys: .first) { $0.hashGet($1) },
    SimCommand("hgetall", 2, keys: .first) { $0.hashGetAll($1) },
    SimCommand("hset", -4, [.write, .grows], keys: .first) { $0.hashSet($1) },
    SimCommand("hsetnx", 4, [.write, .grows], keys: .first) { $0.hashSetNew($1) },
  ]

  private static let sortedSets = [
    SimCommand("zadd", -4, [.write, .grows], keys: .first) { $0.sortedAdd($1) },
    SimCommand("zrem", -3, [.write], keys: .first) { $0.sortedRemove($1) },
    SimCommand("zcount", 4, keys: .first) { $0.sortedCount($1) },
    SimCommand("zrangebyscore", -4, keys: .first) { $0.sortedRange($1) },
  ]

  private static let scripts = [
    SimCommand("eval", -3, [.notInScripts], keys: .counted) { $0.evaluate($1) },
    SimCommand("evalsha", -3, [.notInScripts], keys: .counted) { $0.evaluateLoaded($1) },
    SimCommand("script", -2, [.notInScripts]) { $0.script($1) },
  ]

  private static let messages = [
    SimCommand("publish", 3, [.loading, .stale]) { $0.publish($1) },
    SimCommand("subscribe", -2, [.notInScripts, .loading, .stale, .subscribed, .sentinel]) {
      $0.subscribe($1)
    },
    SimCommand("unsubscribe", -1, [.notInScripts, .loading, .stale, .subscribed, .sentinel]) {
      $0.unsubscribe($1)
    },
  ]

  private static let server = [
    SimCommand("time", 1, [.loading, .stale]) { $0.time($1) },
    SimCommand("info", -1, [.loading, .stale, .sentinel]) { $0.info($1) },
    SimCommand("role", 1, [.notInScripts, .loading, .stale, .sentinel]) { $0.role($1) },
    SimCommand("cluster", -2, [.stale]) { $0.clusterCommand($1) },
    SimCommand("sentinel", -2, [.sentinel]) { $0.sentinelCommand($1) },
  ]
}
