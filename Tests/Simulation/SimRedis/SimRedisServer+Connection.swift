/// The commands about connections and the server itself.
extension SimRedisServer {
  func ping(_ call: SimCall) -> RESPReply {
    guard call.words.count <= 2 else { return SimRedisVersion.wrongArity("ping") }
    let word = call.words.count == 2 ? call.words[1] : nil
    if !call.client.channels.isEmpty { return .array([.text("pong"), .bulk(word ?? [])]) }
    return word.map { .bulk($0) } ?? .status("PONG")
  }

  func authenticate(_ call: SimCall) -> RESPReply {
    guard call.words.count <= 3 else { return Self.syntax }
    if call.words.count == 2, settings.users["default"] == nil {
      return .error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
      )
    }
    let user = call.words.count == 3 ? call.text(1) : "default"
    let password = call.text(call.words.count - 1)
    // Without a password, the default user takes any.
    let isRight = settings.users[user].map { $0 == password } ?? (user == "default")
    guard isRight else { return .error("WRONGPASS invalid username-password pair or user is disabled.") }
    call.client.isAuthenticated = true
    return .ok
  }

  func select(_ call: SimCall) -> RESPReply {
    guard let index = strictInteger(call.words[1]) else { return Self.notInteger }
    guard Int32(exactly: index) != nil else {
      return .error("ERR value is out of range, value must between -2147483648 and 2147483647")
    }
    if slots != nil, index != 0, version != .valkey9 {
      return .error("ERR SELECT is not allowed in cluster mode")
    }
    guard 0..<(slots == nil ? Int64(Self.databaseCount) : 1) ~= index else {
      return .error("ERR DB index is out of range")
    }
    call.client.database = Int(index)
    return .ok
  }

  func time(_ call: SimCall) -> RESPReply {
    let time = clock.microseconds(at: call.now)
    return .array([.text(String(time / 1_000_000)), .text(String(time % 1_000_000))])
  }

  func asking(_ call: SimCall) -> RESPReply {
    guard slots != nil else { return .error("ERR This instance has cluster support disabled") }
    call.client.isAsking = true
    return .ok
  }

  func client(_ call: SimCall) -> RESPReply {
    let subcommand = call.text(1).uppercased()
    switch subcommand {
    case "ID":
      guard call.words.count == 2 else { return version.wrongArity("client", call.words[1]) }
      return .integer(Int64(call.client.id))
    case "SETNAME":
      guard call.words.count == 3 else { return version.wrongArity("client", call.words[1]) }
      guard call.words[2].allSatisfy({ 0x21...0x7E ~= $0 }) else {
        return .error("ERR Client names cannot contain spaces, newlines or special characters.")
      }
      call.client.name = call.text(2)
      return .ok
    default: return version.unknownSubcommand("client", call.words[1])
    }
  }
}

/// Messages.
extension SimRedisServer {
  func publish(_ call: SimCall) -> RESPReply {
    let (channel, message) = (call.words[1], call.words[2])
    let count = deliver(message, to: channel)
    if slots == nil {
      // A replica's own message goes no further.
      if isMaster { change(.publish(channel, message: message), in: call.client.database) }
    } else {
      didPublish(channel, message)
    }
    return .integer(Int64(count))
  }

  /// Sends a message to the subscribers. Returns their number.
  @discardableResult
  package func deliver(_ message: Bytes, to channel: Bytes) -> Int {
    let connections = subscribers[channel] ?? []
    for connection in connections {
      send(.array([.text("message"), .bulk(channel), .bulk(message)]), to: connection)
    }
    return connections.count
  }

  func subscribe(_ call: SimCall) -> RESPReply {
    .sequence(
      call.words.dropFirst().map { channel in
        if !call.client.channels.contains(channel) {
          call.client.channels.append(channel)
          subscribers[channel, default: []].append(call.client.id)
        }
        return subscription("subscribe", channel, of: call.client)
      })
  }

  func unsubscribe(_ call: SimCall) -> RESPReply {
    var channels = Array(call.words.dropFirst())
    if channels.isEmpty { channels = call.client.channels }
    guard !channels.isEmpty else { return subscription("unsubscribe", nil, of: call.client) }
    return .sequence(
      channels.map { channel in
        call.client.channels.removeAll { $0 == channel }
        subscribers[channel]?.removeAll { $0 == call.client.id }
        return subscription("unsubscribe", channel, of: call.client)
      })
  }

  private func subscription(_ word: String, _ channel: Bytes?, of client: SimClient) -> RESPReply {
    .array([.text(word), channel.map { .bulk($0) } ?? .null, .integer(Int64(client.channels.count))])
  }
}
