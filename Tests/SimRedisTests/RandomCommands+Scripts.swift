import SimRedis

/// Commands with scripts of Semel's, and with others.
extension RandomCommands {
  private static let sources = [
    "return redis.call('GET', KEYS[1])", "return redis.pcall('GET', KEYS[1])",
    "\n\nreturn {redis.call('STRLEN', KEYS[1]), ARGV[1]}",
    "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', 20) return redis.call('SET', KEYS[1], ARGV[1], 'NX')",
    "redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], 'f', #ARGV[1])",
    "return redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[1])",
    "return redis.call('NOPE', 1)", "return redis.pcall('NOPE').err", "return redis.call('GET')",
    "return redis.pcall('GET').err", "return redis.call()", "return redis.call({})",
    "return redis.call('SUBSCRIBE', 'x')", "return redis.pcall('EVAL', 'return 1', 0).err",
    "return {1, 2.9, -3.9, 'a', true, false, nil, 4}", "return {1, {2, {3, 'x'}}, false}",
    "return {err = 'MY text'}", "return {ok = 'fine'}", "return redis.error_reply('MY text')",
    "return redis.status_reply('fine')", "error('boo')", "local x = nil return x + 1", "return 1e15",
    "return tonumber(ARGV[1])", "return KEYS[2]", "return #KEYS .. ' ' .. #ARGV", "retur n",
    "return redis.call('HGETALL', KEYS[1])", "return redis.call('HSETNX', KEYS[1], 'f', #ARGV[1])",
    "return redis.call('PEXPIRE', KEYS[1], 30)", "return redis.call('TIME')",
    "return redis.pcall('PUBLISH', 'c1', ARGV[1])", "return {struct.unpack('>BHI4I4', ARGV[1])}",
    "return redis.call('SET', KEYS[1], 12345678901234)", "return redis.call('SET', KEYS[1], 1e17)",
    "return {string.match(ARGV[1], '(%a+)-(%d+)')}", "return redis.call('GET', KEYS[1]) or 'none'",
    "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)",
  ]

  mutating func script() -> [Bytes] {
    let source = Bytes(one(Self.sources).utf8)
    let count = chance(15) ? integer(-1...4) : Bytes("1".utf8)
    if chance(10) {
      return texts("EVALSHA", one(["", "abc", String(repeating: "0", count: 40)])) + [count, key()]
    }
    return texts("EVAL") + [source, count, key(), value()]
  }

  /// A script of Semel's, with arguments that mostly are right.
  mutating func record() -> RandomCommand {
    let index = Int(number(0...Int64(scripts.count - 1)))
    var (key, arguments, comparison) = call(index)
    // A walk that is not whole has an order of its own.
    if case .whole = comparison, chance(30), !arguments.isEmpty {
      arguments[Int(number(0...Int64(arguments.count - 1)))] = one([value(), integer(-5...5), key])
    }
    if chance(60) { key = self.key() }
    let name =
      chance(12) ? texts("EVAL") + [scripts[index].source] : texts("EVALSHA") + [scripts[index].digest]
    return RandomCommand(words: name + texts("1") + [key] + arguments, comparison: comparison)
  }

  private mutating func owner() -> String { one(["a", "b", "c"]) + String(repeating: "0", count: 31) }

  /// The operator's tokens have one first half.
  private mutating func operatorToken() -> String {
    String(repeating: "f", count: 16) + one(["0", "1"]) + String(repeating: "0", count: 15)
  }

  private mutating func span() -> String { "\(one([0, 1, 50, 300, 2000, 100_000] as [Int64]))" }

  private mutating func print() -> String { one(["1", "2"]) + "234567890abcdef " + one(["r1", "r1", "r2"]) }

  private mutating func origin() -> String {
    one(["", " @orders,k1,c1,node-1", " @orders,,,n", " @other,k2,,n"])
  }

  private mutating func flags() -> String { one(["o", "o", "-", "u", "n1", "of\(time + 200)"]) }

  private mutating func beginning() -> String { "1 \(owner()) " }

  private mutating func deadline() -> String { "\(time + one([1000, 1000, 1000, 0, -5] as [Int64]))" }

  /// A response in the form that the scripts look into.
  private mutating func response() -> String {
    let head: [UInt8] = [1, 0, 100, 0, 0, 0, UInt8(number(0...6)), 0, 0, 0, 0]
    return String(decoding: head, as: UTF8.self) + "body"
  }

  /// The arguments of a script, by its number in `RedisScript`.
  private mutating func call(_ index: Int) -> (key: Bytes, arguments: [Bytes], RandomCommand.Comparison) {
    let key = Bytes("r:{\(number(0...5))}".utf8)
    let fact = Bytes("r:facts".utf8)
    let operatorEnd = ["r:invalidate", "id"]
    switch index {
    case 0:
      return (
        key,
        texts(
          owner(), deadline(), "\(span()) \(span()) \(span())", print(), one(["1", "500", "4000"]),
          one(["-1", "0", "50", "400"]), one(["1", "1", "100001"]), origin()), .whole
      )
    case 1:
      let end = "\(span()) \(span()) \(span()) \(flags()) \(print())\(origin())"
      return (key, texts(beginning(), "1 \(time)", end, one(["1", "500", "4000"])), .whole)
    case 2: return (key, complete(), .whole)
    case 3: return (key, texts(beginning(), one(["remembered", "uncounted", "deleted"])), .whole)
    case 4:
      let end = "0 \(span()) \(span()) \(flags()) \(print())\(origin())"
      return (key, texts(beginning(), "1 \(time)", end, one(["1", "500", "4000"])), .whole)
    case 6:
      return (
        key,
        texts(operatorToken(), one(["0", "100", "1000"])) + texts(operatorEnd[0], operatorEnd[1])
          + texts(deadline(), deadline()), .whole
      )
    case 7:
      return (
        key,
        texts(
          operatorToken(), one(["completed", "released"]), span(), span(), one(["", " 201", " 200 /there"]))
          + texts(one(["", "", "e"])) + texts(operatorEnd[0], operatorEnd[1], one(["", "amend"]))
          + texts(deadline(), one(["", "", "1", "2"]), one(["", "", ":r:x"])), .whole
      )
    case 8: return (key, texts("0", "r:{*}", "100000", "3"), .groups(from: 3, of: 2))
    case 9:
      return (
        key, texts("0", "r:{*}", "100000", "3", one(["", " k1 "]), one(["", "c1"]), one(["", "orders"])),
        .groups(from: 3, of: 1)
      )
    case 10: return (fact, texts("epoch", one(["", "1", "2"]), one(["", "1", "2", "3"])), .whole)
    default: return (key, [], .whole)
    }
  }

  private mutating func complete() -> [Bytes] {
    let place = one(["-", "e", "b", "k", "ex"])
    let end = place.hasPrefix("e") ? " 200 " + response() : one([" 200", " 201 /there"])
    let text = "\(span()) 0 \(span()) \(place) \(print())\(origin())\(end)"
    return texts(
      beginning(), one(["1", "2"]), text, one(["1", "500", "4000"]), "\(time - number(0...500))",
      one(["", "", "\(time)"]), one(["", "", ":r:" + owner()]))
  }
}
