/// The script that is running.
struct SimScript {
  let call: SimCall
  /// Whether the memory did not suffice at its beginning.
  let isOutOfMemory: Bool
  /// Whether it has called a command that writes.
  var hasWritten = false
}

/// The commands that run scripts.
extension SimRedisServer {
  func script(_ call: SimCall) -> RESPReply {
    guard call.text(1).uppercased() == "LOAD" else {
      return version.unknownSubcommand("script", call.words[1])
    }
    guard call.words.count == 3 else { return version.wrongArity("script", call.words[1]) }
    let digest = LuaEngine.digest(of: call.words[2])
    return compile(call.words[2], digest: digest) ?? .bulk(digest)
  }

  func evaluate(_ call: SimCall) -> RESPReply {
    let digest = LuaEngine.digest(of: call.words[1])
    return keyCount(call) { count in
      compile(call.words[1], digest: digest) ?? run(digest, call, keyCount: count)
    }
  }

  func evaluateLoaded(_ call: SimCall) -> RESPReply {
    let digest = call.words[1].map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
    // A name that is none is not found before anything else is read.
    if digest.count != 40 { return version.noScript }
    return keyCount(call) { count in
      engine.has(digest) ? run(digest, call, keyCount: count) : version.noScript
    }
  }

  private func keyCount(_ call: SimCall, _ body: (Int) -> RESPReply) -> RESPReply {
    guard let count = strictInteger(call.words[2]) else { return Self.notInteger }
    guard count <= call.words.count - 3 else {
      return .error("ERR Number of keys can't be greater than number of args")
    }
    guard count >= 0 else { return .error("ERR Number of keys can't be negative") }
    return body(Int(count))
  }

  /// Compiles a script, unless it is known. Returns an error, or `nil`.
  private func compile(_ source: Bytes, digest: Bytes) -> RESPReply? {
    engine.load(source, digest: digest).map {
      .error("ERR Error compiling script (new function): \($0)".oneLine)
    }
  }

  private func run(_ digest: Bytes, _ call: SimCall, keyCount: Int) -> RESPReply {
    script = SimScript(call: call, isOutOfMemory: isOutOfMemory)
    defer { script = nil }
    let arguments = call.words[3...]
    switch engine.run(digest, keys: arguments.prefix(keyCount), arguments: arguments.dropFirst(keyCount)) {
    case .success(let reply): return reply
    case .failure(let failure):
      return .error(version.scriptError(String(decoding: digest, as: UTF8.self), failure.error))
    }
  }
}

/// The commands that scripts call.
extension SimRedisServer {
  func runInScript(_ words: [Bytes], line: Int) -> LuaCallResult {
    guard let script else { return .raised("ERR no script runs") }
    guard let command = lookUp(words[0]) else { return .raised(scriptFault(.unknown, line: line)) }
    guard command.takes(words.count, version) else { return .raised(scriptFault(.arity, line: line)) }
    switch command.subcommandFault(of: words, version) {
    case .unknown?: return .raised(scriptFault(.unknown, line: line))
    case .arity?: return .raised(scriptFault(.arity, line: line))
    case nil: break
    }
    let mayWait = version == .valkey9 && command.name == "wait"
    if command.flags.contains(.notInScripts), !mayWait {
      return .raised(scriptFault(.notAllowed, line: line))
    }
    let call = SimCall(words: words, client: script.call.client, time: script.call.time, now: script.call.now)
    if let refusal = refusalInScript(of: command, call, script) {
      return .raised(inScript(refusal, line: line))
    }
    if command.flags.contains(.write) { self.script?.hasWritten = true }
    if let slots, redirection(of: command, call, in: slots) != nil {
      return .raised(scriptFault(.foreignKey, line: line))
    }
    return .reply(command.run(self, call))
  }

  private func refusalInScript(of command: SimCommand, _ call: SimCall, _ script: SimScript) -> RESPReply? {
    if servesNothingStale, !command.flags.contains(.stale) {
      return .error("ERR Can not execute the command on a stale replica")
    }
    guard !script.hasWritten else { return nil }
    let lacksMemory = script.isOutOfMemory && isMaster && command.flags.contains(.grows)
    if lacksMemory, version == .valkey9 { return Self.outOfMemory }
    if command.flags.contains(.write) {
      if !isMaster { return Self.readOnly }
      if let diskError { return diskError }
      if version != .redis6, hasTooFewReplicas(at: call.now) { return Self.tooFewReplicas }
    }
    return lacksMemory ? Self.outOfMemory : nil
  }

  /// The text of a refusal, in which Redis 6 writes the line, and the error as it would be on the wire.
  private func inScript(_ refusal: RESPReply, line: Int) -> String {
    guard case .error(let text) = refusal else { return "" }
    return version == .redis6 ? "@user_script: \(line): -\(text)\r\n" : text
  }

  func scriptFault(_ fault: SimRedisVersion.ScriptFault, line: Int) -> String {
    let text = version.text(of: fault)
    return version == .redis6 ? "@user_script: \(line): \(text)" : text
  }
}

extension SimRedisServer {
  /// The name by which servers know a script.
  package static func digest(of source: Bytes) -> Bytes { LuaEngine.digest(of: source) }
}
