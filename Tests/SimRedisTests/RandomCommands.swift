import SimRedis
import TestSupport

/// One command of a differential run, and the part of its reply that is compared.
struct RandomCommand {
  enum Comparison {
    case whole
    /// The members of an array from one on are in groups of any order.
    case groups(from: Int, of: Int)
    /// Everything but the names of channels, of which there is no order.
    case channels
    /// The milliseconds of a time.
    case time
    /// A walk from cursor to cursor, whose keys are compared.
    case walk
    /// The lines with these names.
    case lines([String])
  }

  var words: [Bytes]
  var comparison = Comparison.whole
}

/// Words of a command.
func texts(_ words: String...) -> [Bytes] { words.map { Bytes($0.utf8) } }

/// Commands by a seed: those that Semel sends, with usual, unusual and wrong arguments.
struct RandomCommands {
  var generator: SeededGenerator
  /// The server's time, in milliseconds since 1970.
  var time: Int64 = 0
  /// The scripts of Semel by their digests.
  let scripts: [(digest: Bytes, source: Bytes)]

  init(seed: UInt64, scripts: [String], digest: (Bytes) -> Bytes) {
    generator = SeededGenerator(seed: seed)
    self.scripts = scripts.map { (digest(Bytes($0.utf8)), Bytes($0.utf8)) }
  }

  mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }

  mutating func one<T>(_ choices: [T]) -> T { choices[Int.random(in: 0..<choices.count, using: &generator)] }

  mutating func number(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &generator) }

  /// The next command of a connection.
  ///
  /// - Parameter subscribes: Whether it may subscribe, after which a connection takes few commands.
  mutating func next(subscribes: Bool) -> RandomCommand {
    var command: RandomCommand =
      switch number(0...99) {
      case 0..<35: RandomCommand(words: plain())
      case 35..<75: record()
      case 75..<90: RandomCommand(words: script())
      case 90..<97: RandomCommand(words: other(subscribes: subscribes))
      case 97:
        RandomCommand(
          words: texts("SCAN", "0", "MATCH", one(["*", "k*", "r:*", "[ab-d]?*", "x"])), comparison: .walk)
      case 98:
        RandomCommand(
          words: texts("INFO")
            + one([
              [], texts("replication"), texts("memory"), texts("persistence"), texts("stats"),
              texts("cluster"),
            ]),
          comparison: .lines([
            "role", "loading", "aof_enabled", "evicted_keys", "cluster_enabled", "maxmemory",
            "maxmemory_policy",
            "connected_slaves", "min_slaves_good_slaves", "master_host", "master_port", "master_link_status",
          ]))
      default: RandomCommand(words: wrong())
      }
    if chance(20) {
      command.words[0] = Bytes(String(decoding: command.words[0], as: UTF8.self).lowercased().utf8)
    }
    let beginning = String(decoding: command.words.prefix(2).joined(), as: UTF8.self)
    if beginning.uppercased().contains("HGETALL") { command.comparison = .groups(from: 0, of: 2) }
    if beginning.hasSuffix("redis.call('TIME')")
      || command.words.count == 1 && beginning.uppercased() == "TIME"
    {
      command.comparison = .time
    }
    if command.words.count == 1, command.words[0].count == 11 { command.comparison = .channels }
    return command
  }

  mutating func key() -> Bytes { Bytes("k\(number(0...7))".utf8) }

  mutating func value() -> Bytes {
    switch number(0...5) {
    case 0: []
    case 1: Bytes("\(number(-1000...1000))".utf8)
    case 2: [0x0D, 0x0A, 0x00, 0xFF, 0x24]
    case 3: Bytes(repeating: 0x61, count: Int(number(1...300)))
    default: Bytes("value-\(number(0...9))".utf8)
    }
  }

  /// An integer as an argument, or something that is none.
  mutating func integer(_ range: ClosedRange<Int64>) -> Bytes {
    guard chance(12) else { return Bytes("\(number(range))".utf8) }
    return Bytes(
      one(["", "x", "1.5", "+1", "01", " 1", "-0", "9223372036854775807", "9223372036854775808", "-1", "0"])
        .utf8)
  }
}

/// Commands without a script.
extension RandomCommands {
  private mutating func plain() -> [Bytes] {
    switch number(0...16) {
    case 0, 1: texts("GET") + [key()]
    case 2, 3: set()
    case 4: texts("STRLEN") + [key()]
    case 5: texts("GETRANGE") + [key(), integer(-8...8), integer(-8...8)]
    case 6: texts("DEL") + [key(), key(), key()].prefix(Int(number(1...3)))
    case 7: texts("PEXPIRE") + [key(), integer(-10...3000)]
    case 8: texts("HGET") + [key(), field()]
    case 9: texts("HGETALL") + [key()]
    case 10: texts("HSETNX") + [key(), field(), small()]
    case 13: texts("ZADD") + [sortedKey()] + (0..<number(1...3)).flatMap { _ in [score(), field()] }
    case 14: texts("ZREM") + [sortedKey()] + (chance(2) ? [field()] : [field(), field()])
    case 15: texts("ZCOUNT") + [sortedKey(), bound(), bound()]
    case 16: sortedRange()
    default: texts("HSET") + [key(), field(), small()] + (chance(3) ? [field(), small()] : [])
    }
  }

  /// A key that is more often a sorted set than others.
  private mutating func sortedKey() -> Bytes { chance(4) ? key() : Bytes("k7".utf8) }

  private mutating func score() -> Bytes {
    Bytes((chance(15) ? one(["x", "1x", "(1"]) : "\(number(-5...1_700_000_000_000))").utf8)
  }

  private mutating func bound() -> Bytes {
    switch number(0...6) {
    case 0, 1: Bytes("-inf".utf8)
    case 2, 3: Bytes("+inf".utf8)
    case 4: Bytes("(\(number(-5...1_700_000_000_000))".utf8)
    case 5: Bytes(one(["x", "((1", "1x"]).utf8)
    default: Bytes("\(number(-5...1_700_000_000_000))".utf8)
    }
  }

  private mutating func sortedRange() -> [Bytes] {
    var command = texts("ZRANGEBYSCORE") + [sortedKey(), bound(), bound()]
    if chance(2) { command += texts(one(["WITHSCORES", "withscores", "FOO"])) }
    // Not before the first, of which versions differ.
    let offset = chance(12) ? one(["", "x", "1.5", "+1", " 1"]) : "\(number(0...4))"
    if chance(2) { command += texts("LIMIT", offset) + [integer(-2...4)] }
    return command
  }

  private mutating func field() -> Bytes { Bytes("f\(number(0...5))".utf8) }

  /// A value that leaves a hash in the form whose fields keep their order.
  private mutating func small() -> Bytes { Bytes("v\(number(0...99))".utf8) }

  private mutating func set() -> [Bytes] {
    var command = texts("SET") + [key(), value()]
    for _ in 0..<number(0...3) {
      switch number(0...8) {
      case 0, 1: command += texts("NX")
      case 2: command += texts("XX")
      case 3, 4: command += texts("GET")
      case 5: command += texts("KEEPTTL")
      case 6, 7: command += texts("PX") + [integer(1...2000)]
      default: command += texts(one(["PX", "px", "nx", "get", "FOO", ""]))
      }
    }
    return command
  }

  private mutating func other(subscribes: Bool) -> [Bytes] {
    switch number(0...14) {
    case 0: texts("PING") + (chance(2) ? [value()] : [])
    case 1: texts("TIME")
    case 2: texts("SELECT") + [chance(3) ? integer(0...20) : Bytes("0".utf8)]
    case 3: texts("CLIENT", "SETNAME", one(["semel", "a b", "", "ä"]))
    case 4: texts("WAIT", "0") + [integer(1...100)]
    case 5: texts("PUBLISH", one(["c1", "c2"])) + [value()]
    case 6 where subscribes, 7 where subscribes:
      texts("SUBSCRIBE", one(["c1", "c2"])) + (chance(3) ? texts("c3") : [])
    case 6...10: texts("UNSUBSCRIBE") + (chance(2) ? [] : texts(one(["c1", "c2", "c3"])))
    case 11: texts("AUTH") + texts(one(["x", "default", "nobody"])) + (chance(2) ? texts("p") : [])
    case 12: texts("SCRIPT", "LOAD") + [chance(3) ? Bytes("return 1".utf8) : one(scripts).source]
    case 13: texts("SCAN", one(["x", "18446744073709551616", "1x"]))
    default: texts(one(["ASKING", "CLUSTER"])) + texts("SLOTS").prefix(chance(2) ? 1 : 0)
    }
  }

  /// A command with a wrong number of words, or none that a server has.
  private mutating func wrong() -> [Bytes] {
    switch number(0...3) {
    case 0:
      return texts(one(["FOO", "foo", "GETT", "NOSUCH"])) + [key(), value()].prefix(Int(number(0...2)))
    case 1: return plain() + [key()]
    case 2: return Array(plain().dropLast())
    default:
      return one([texts("CLIENT", one(["FOO", "SETNAME"])), texts("SCRIPT", one(["FOO", "load"]))])
    }
  }
}
