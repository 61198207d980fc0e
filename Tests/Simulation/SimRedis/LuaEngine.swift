import CLua
import Crypto

/// The scripts of one server under real Lua 5.1, with the libraries and functions that Semel's scripts use.
///
/// No other file touches Lua's state.
final class LuaEngine {
  private var state: OpaquePointer?
  private var references: [Bytes: Int32] = [:]
  /// Runs a command of the script that is running. The last argument is the line of the call.
  var didCall: ([Bytes], Int) -> LuaCallResult = { _, _ in .raised("ERR no server") }
  /// The error of arguments that are no texts or numbers, and of a call without any.
  var fault: (SimRedisVersion.ScriptFault, Int) -> String = { fault, _ in "\(fault)" }

  /// Whether errors are raised as texts, as before Redis 7.
  private let raisesTexts: Bool
  /// Whether numbers are written with as few digits as they need.
  private let writesShortNumbers: Bool

  init(_ version: SimRedisVersion) {
    raisesTexts = version == .redis6
    writesShortNumbers = version == .valkey9
    let context = Unmanaged.passUnretained(self).toOpaque()
    state = semel_lua_create(
      { context, state, isProtected, line in
        guard let context, let state else { return 0 }
        let engine = Unmanaged<LuaEngine>.fromOpaque(context).takeUnretainedValue()
        return engine.call(state, isProtected: isProtected != 0, line: Int(line))
      }, context)
    precondition(state != nil, "LuaEngine: out of memory")
  }

  deinit { lua_close(state) }

  /// The name of a script: the digits of its SHA-1.
  static func digest(of source: Bytes) -> Bytes {
    let digits = Bytes("0123456789abcdef".utf8)
    return Insecure.SHA1.hash(data: source).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
  }

  func has(_ digest: Bytes) -> Bool { references[digest] != nil }

  /// Forgets all scripts.
  func removeAll() {
    for reference in references.values { luaL_unref(state, LUA_REGISTRYINDEX, reference) }
    references = [:]
  }

  /// Compiles a script, unless it is known. Returns the compiler's error; `nil` if there is none.
  func load(_ source: Bytes, digest: Bytes) -> String? {
    guard references[digest] == nil else { return nil }
    let reference = source.withUnsafeBytes { bytes in
      semel_lua_compile(state, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    guard semel_lua_is_no_reference(reference) == 0 else {
      defer { semel_lua_pop(state, 1) }
      return Self.text(state, -1) ?? ""
    }
    references[digest] = reference
    return nil
  }

  /// Runs a script that is known.
  func run(_ digest: Bytes, keys: ArraySlice<Bytes>, arguments: ArraySlice<Bytes>) -> Result<
    RESPReply, LuaFailure
  > {
    guard let reference = references[digest] else { preconditionFailure("LuaEngine: an unknown script") }
    set("KEYS", keys)
    set("ARGV", arguments)
    let code = semel_lua_call(state, reference)
    defer { semel_lua_pop(state, 1) }
    return code == 0 ? .success(reply(depth: 0)) : .failure(LuaFailure(error: error(code)))
  }

  private func set(_ name: String, _ texts: ArraySlice<Bytes>) {
    lua_createtable(state, Int32(texts.count), 0)
    for (index, text) in texts.enumerated() {
      push(text)
      lua_rawseti(state, -2, Int32(index + 1))
    }
    semel_lua_set_global(state, name)
  }

  private func error(_ code: Int32) -> LuaError {
    // The handler itself may have failed.
    guard code == LUA_ERRRUN, lua_type(state, -1) == LUA_TTABLE else {
      return LuaError(text: Self.text(state, -1) ?? "", isCoded: false)
    }
    func member(_ index: Int32) -> String? {
      lua_rawgeti(state, -1, index)
      defer { semel_lua_pop(state, 1) }
      return Self.text(state, -1)
    }
    lua_rawgeti(state, -1, 2)
    let isCoded = lua_toboolean(state, -1) != 0
    semel_lua_pop(state, 1)
    return LuaError(
      text: member(1) ?? "", isCoded: isCoded, source: member(3), line: member(4).flatMap { Int($0) } ?? 0)
  }

  private static func text(_ state: OpaquePointer?, _ index: Int32) -> String? {
    bytes(state, index).map { String(decoding: $0, as: UTF8.self) }
  }

  private static func bytes(_ state: OpaquePointer?, _ index: Int32) -> Bytes? {
    var length = 0
    guard let start = lua_tolstring(state, index, &length) else { return nil }
    return Bytes(UnsafeRawBufferPointer(start: start, count: length))
  }

  private func push(_ text: Bytes) {
    text.withUnsafeBytes { bytes in
      // An empty buffer may have no address, which Lua takes for no text.
      if let start = bytes.baseAddress {
        lua_pushlstring(state, start.assumingMemoryBound(to: CChar.self), bytes.count)
      } else {
        lua_pushlstring(state, "", 0)
      }
    }
  }
}

struct LuaFailure: Error { let error: LuaError }

/// The calls of commands.
extension LuaEngine {
  private func call(_ state: OpaquePointer, isProtected: Bool, line: Int) -> Int32 {
    let result: LuaCallResult
    do throws(WordsFault) { result = didCall(try words(line: line), line) } catch {
      result = .raised(error.text)
    }
    lua_settop(state, 0)
    switch result {
    case .reply(.error(let text)) where !isProtected, .raised(let text) where !isProtected:
      raise(text)
      return -1
    case .raised(let text): push(.error(text))
    case .reply(let reply): push(reply)
    }
    return 1
  }

  private struct WordsFault: Error { let text: String }

  private func raise(_ text: String) {
    if raisesTexts { push(Bytes(text.utf8)) } else { push(.error(text)) }
  }

  private func words(line: Int) throws(WordsFault) -> [Bytes] {
    let count = lua_gettop(state)
    guard count > 0 else { throw WordsFault(text: fault(.noArguments, line)) }
    var words: [Bytes] = []
    words.reserveCapacity(Int(count))
    for index in 1...count {
      switch lua_type(state, index) {
      case LUA_TNUMBER: words.append(text(of: lua_tonumber(state, index)))
      case LUA_TSTRING: words.append(Self.bytes(state, index) ?? [])
      default: throw WordsFault(text: fault(.badArgument, line))
      }
    }
    return words
  }

  /// The text of a number as an argument of a command. Numbers of Semel's scripts are integers.
  private func text(of number: Double) -> Bytes {
    if writesShortNumbers {
      return Int64(exactly: number).map { Bytes(String($0).utf8) } ?? Bytes("\(number)".utf8)
    }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 40) { text in
      semel_lua_write_number(number, text.baseAddress, text.count)
      return text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    }
  }
}

/// The conversions between Lua's values and replies.
extension LuaEngine {
  private func push(_ reply: RESPReply) {
    switch reply {
    case .integer(let value): lua_pushnumber(state, Double(value))
    case .bulk(let text): push(text)
    case .null, .nullArray: lua_pushboolean(state, 0)
    case .status(let text): pushTable("ok", text)
    case .error(let text): pushTable("err", text)
    case .array(let members), .sequence(let members):
      lua_createtable(state, Int32(members.count), 0)
      for (index, member) in members.enumerated() {
        push(member)
        lua_rawseti(state, -2, Int32(index + 1))
      }
    }
  }

  private func pushTable(_ field: String, _ text: String) {
    lua_createtable(state, 0, 1)
    push(Bytes(text.utf8))
    lua_setfield(state, -2, field)
  }

  /// The value on the top of the stack as a reply.
  private func reply(depth: Int) -> RESPReply {
    switch lua_type(state, -1) {
    case LUA_TSTRING: .bulk(Self.bytes(state, -1) ?? [])
    case LUA_TBOOLEAN: lua_toboolean(state, -1) == 0 ? .null : .integer(1)
    case LUA_TNUMBER: .integer(Self.integer(lua_tonumber(state, -1)))
    case LUA_TTABLE: table(depth: depth)
    default: .null
    }
  }

  private static func integer(_ number: Double) -> Int64 {
    number.isFinite && abs(number) < 0x1p63 ? Int64(number) : .min
  }

  private func table(depth: Int) -> RESPReply {
    guard depth < 100, lua_checkstack(state, 4) != 0 else { return .error("ERR reached lua stack limit") }
    if let text = field("err") { return .error(text.oneLine) }
    if let text = field("ok") { return .status(text.oneLine) }
    var members: [RESPReply] = []
    var index: Int32 = 1
    while true {
      lua_rawgeti(state, -1, index)
      defer { semel_lua_pop(state, 1) }
      if lua_type(state, -1) == LUA_TNIL { return .array(members) }
      members.append(reply(depth: depth + 1))
      index += 1
    }
  }

  private func field(_ name: String) -> String? {
    push(Bytes(name.utf8))
    lua_rawget(state, -2)
    defer { semel_lua_pop(state, 1) }
    return lua_type(state, -1) == LUA_TSTRING ? Self.text(state, -1) : nil
  }
}
