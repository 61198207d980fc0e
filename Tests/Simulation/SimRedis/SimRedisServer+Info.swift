/// `INFO` and `ROLE`, with the lines that Semel reads and some of those beside them.
extension SimRedisServer {
  private static let sections = ["server", "memory", "persistence", "stats", "replication", "cluster"]
  private static let noHistory = String(repeating: "0", count: 40)

  func info(_ call: SimCall) -> RESPReply {
    let names = call.words.dropFirst().map { String(decoding: $0, as: UTF8.self).lowercased() }
    let wanted = names.isEmpty ? Self.sections : Self.sections.filter(names.contains)
    let texts = wanted.map { name in
      "# \(name.prefix(1).uppercased())\(name.dropFirst())\r\n"
        + lines(of: name, call).map { "\($0.name):\($0.value)\r\n" }.joined()
    }
    return .text(texts.joined(separator: "\r\n"))
  }

  private func lines(of section: String, _ call: SimCall) -> [(name: String, value: String)] {
    switch section {
    case "server":
      [
        ("redis_version", version.info), ("run_id", run), ("tcp_port", "\(settings.address.port)"),
        ("server_time_usec", "\(clock.microseconds(at: call.now))"),
      ]
    case "memory":
      [
        ("used_memory", "\(usedMemory)"), ("maxmemory", "\(maxMemory ?? 0)"),
        ("maxmemory_policy", settings.eviction.rawValue),
      ]
    case "persistence":
      [
        ("loading", isLoading ? "1" : "0"), ("aof_enabled", settings.appendOnly == nil ? "0" : "1"),
        ("aof_last_write_status", diskFault == nil ? "ok" : "err"),
      ]
    case "stats": [("evicted_keys", "\(evictedCount)")]
    case "cluster": [("cluster_enabled", slots == nil ? "0" : "1")]
    default: replication(call)
    }
  }

  private func replication(_ call: SimCall) -> [(name: String, value: String)] {
    var lines = [("role", isMaster ? "master" : "slave")]
    if let masterAddress {
      lines += [
        ("master_host", masterAddress.host), ("master_port", "\(masterAddress.port)"),
        ("master_link_status", upstream?.isUp == true ? "up" : "down"),
        ("slave_repl_offset", "\(log.end)"),
      ]
    }
    let online = replicas.filter(\.isUp)
    lines.append(("connected_slaves", "\(online.count)"))
    if minReplicas > 0 { lines.append(("min_slaves_good_slaves", "\(goodReplicaCount(at: call.now))")) }
    for (index, link) in online.enumerated() {
      let address = link.replica.settings.address
      lines.append(
        (
          "slave\(index)",
          "ip=\(address.host),port=\(address.port),state=online,offset=\(link.confirmedPlace),lag=0"
        ))
    }
    return lines + [
      ("master_replid", log.id), ("master_replid2", log.formerID ?? Self.noHistory),
      ("master_repl_offset", "\(log.end)"),
      ("second_repl_offset", "\(log.formerID == nil ? -1 : log.formerEnd + 1)"),
    ]
  }

  func role(_ call: SimCall) -> RESPReply {
    if let monitored {
      return .array([.text("sentinel"), .array(monitored.keys.sorted().map { .text($0) })])
    }
    guard let masterAddress else {
      let members = replicas.filter(\.isUp).map { link -> RESPReply in
        let address = link.replica.settings.address
        return .array([.text(address.host), .text("\(address.port)"), .text("\(link.confirmedPlace)")])
      }
      return .array([.text("master"), .integer(log.end), .array(members)])
    }
    let isUp = upstream?.isUp == true
    return .array([
      .text("slave"), .text(masterAddress.host), .integer(Int64(masterAddress.port)),
      .text(isUp ? "connected" : "connect"), .integer(isUp ? log.end : -1),
    ])
  }

  func sentinelCommand(_ call: SimCall) -> RESPReply {
    guard call.text(1).uppercased() == "GET-MASTER-ADDR-BY-NAME" else {
      return version.unknownSubcommand("sentinel", call.words[1])
    }
    guard call.words.count == 3 else { return version.wrongArity("sentinel", call.words[1]) }
    guard let address = monitored?[call.text(2)] else { return .nullArray }
    return .array([.text(address.host), .text("\(address.port)")])
  }
}
