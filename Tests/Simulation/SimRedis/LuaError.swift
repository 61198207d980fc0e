/// The error with which a script has ended.
struct LuaError: Equatable {
  var text: String
  /// Whether the text begins with a code: a command's error, and not one of Lua's.
  var isCoded: Bool
  /// The place at which it was raised; `nil` if that is not known.
  var source: String?
  var line = 0
}

/// The result of a command that a script has called.
enum LuaCallResult {
  case reply(RESPReply)
  /// The script ends with this error, unless it has called `redis.pcall`.
  case raised(String)
}
