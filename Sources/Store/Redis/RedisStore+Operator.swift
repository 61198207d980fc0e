import Idempotency

/// The commands of operators.
extension RedisStore {
  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    let token = OwnerToken.random()
    let capacity = 256 + keys.invalidations.utf8.count
    var isRepeated = false
    let reply = try await nodes.run(.forget, .record(id), capacity: capacity) { writer, deadline in
      writer.token(argument: token)
      writer.argument { $0.span(fence) }
      writer.argument(keys.invalidations)
      writer.argument { $0.digest(id.digest) }
      writer.argument(deadline.milliseconds)
      writer.argument(deadline.milliseconds - (isRepeated ? nodes.settings.timeout.count : 0))
      isRepeated = true
    }
    nodes.publish(id.text, to: keys.invalidations)
    erase(after: reply, of: id)
    nodes.keeper.decided(id)
    guard let result = reply.finalResult else { return true }
    return result.word == .erased
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    let token = OwnerToken.ofOperator()
    let completion: Completion?
    if case .applied(let applied) = try await codec.encoded(resolution, of: id) {
      completion = applied
    } else {
      completion = nil
    }
    let kept = completion.map(RedisCompletion.init)
    let capacity = 680 + (kept?.capacity ?? 0) + keys.invalidations.utf8.count
    let resolve = { () async throws(StoreError) -> ScriptReply in
      try await nodes.run(.resolve, .record(id), capacity: capacity) { writer, deadline in
        writer.token(argument: token)
        writer.argument(completion == nil ? "released" : "completed")
        writer.argument { $0.span(completion?.retention ?? 0) }
        writer.argument { $0.span(completion?.remember ?? 0) }
        writer.argument { kept?.writeEnd(to: &$0) }
        writer.argument { kept?.writeFlags(to: &$0) }
        writer.argument(keys.invalidations)
        writer.argument { $0.digest(id.digest) }
        writer.argument(amending ? "amend" : "")
        writer.argument(deadline.milliseconds)
        writer.argument(attempt.map(String.init) ?? "")
        writer.argument { kept?.writeOwnKeyEnd(token, to: &$0) }
      }
    }
    let reply: ScriptReply
    if let kept {
      reply = try await afterResponse(of: kept, id, token, resolve)
    } else {
      reply = try await resolve()
    }
    nodes.publish(id.text, to: keys.invalidations)
    erase(after: reply, of: id)
    let outcome = try await outcome(of: reply, id)
    if outcome == .done { nodes.keeper.decided(id) }
    if outcome != .done, kept?.place == .ownKey {
      nodes.send(RedisPlainCommand(["DEL", keys.response(id, RedisRecord.responseKey(token))]), id)
    }
    return outcome
  }
}
