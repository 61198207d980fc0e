import Idempotency
import Wire

/// A finding about the servers of a store.
public struct RedisFinding: Sendable, Equatable {
  /// Whether protected requests would fail, or records be lost in spite of `require_durable`.
  public var isError: Bool
  public var text: String

  static func error(_ text: String) -> RedisFinding { RedisFinding(isError: true, text: text) }
  static func warning(_ text: String) -> RedisFinding { RedisFinding(isError: false, text: text) }
}

/// The examination of all servers that the settings name, for an operator who has not started Semel yet.
public struct RedisExamination: Sendable {
  private static let maxSkew: Int64 = 2

  private let settings: RedisEndpointSettings
  private let now: @Sendable () -> Int64

  public init(_ settings: RedisEndpointSettings, now: @escaping @Sendable () -> Int64) {
    self.settings = settings
    self.now = now
  }

  /// Connects to the servers, and returns what is wrong with them.
  public func findings() async -> [RedisFinding] {
    switch settings.topology {
    case .standalone: await examine(settings.address).findings
    case .sentinel(let sentinels, let master, let login): await examine(sentinels, master, login)
    case .cluster(let seeds): await examine(seeds)
    }
  }

  private func examine(_ sentinels: [ServerAddress], _ name: String, _ login: RedisLogin) async
    -> [RedisFinding]
  {
    var found: [RedisFinding] = []
    var masters: [ServerAddress] = []
    for sentinel in sentinels {
      let conversation = RedisConversation(
        address: sentinel, login: login, timeout: settings.timeout, hasURL: false)
      do throws(RedisConversation.Fault) {
        var search = SentinelDiscovery(sentinels: [sentinel], name: name)
        let reply = try await conversation.replies(to: [["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]])
          .values[0]
        switch search.received(reply) {
        case .use(let master): if !masters.contains(master) { masters.append(master) }
        case .pause(let reason): found.append(.error(reason))
        case .query, .wait: break
        }
      } catch {
        found.append(.error("Sentinel at \(sentinel) cannot be used: \(error.reason)"))
      }
    }
    // Semel asks one after the other.
    if !masters.isEmpty { found = found.map { .warning($0.text) } }
    if masters.count > 1 {
      found.append(
        .error("the Sentinels name different masters: \(masters.map { "\($0)" }.joined(separator: ", "))"))
    }
    for master in masters { found += await examineWithReplicas(master) }
    return found
  }

  private func examine(_ seeds: [ServerAddress]) async -> [RedisFinding] {
    var found: [RedisFinding] = []
    var map: SlotMap?
    var replicas: [ServerAddress] = []
    for seed in seeds {
      do throws(RedisConversation.Fault) {
        let reply = try await conversation(seed).replies(to: [["CLUSTER", "SLOTS"]]).values[0]
        if let read = SlotMap(reply, from: seed) {
          map = map ?? read
          for replica in SlotMap.replicas(reply, from: seed) where !replicas.contains(replica) {
            replicas.append(replica)
          }
        } else if case .error(let text) = reply {
          found.append(lacksMap(seed, text))
        }
      } catch {
        found.append(.error("\(seed) cannot be used: \(error.reason)"))
      }
    }
    guard let map else { return found }
    // One node that gives the map is enough.
    found = found.map { .warning($0.text) }
    if map.uncoveredCount > 0 {
      found.append(
        .error("no node of the cluster serves \(map.uncoveredCount) of the 16384 slots"))
    }
    for (slot, master) in map.firstSlots {
      found += await examine(master, tag: SlotMap.tag(of: slot)).findings
    }
    return found + (await examine(replicas: replicas.filter { !map.masters.contains($0) }))
  }

  private func lacksMap(_ seed: ServerAddress, _ error: String) -> RedisFinding {
    let needs = error.hasPrefix("NOPERM") ? "; all that Semel's user needs is: \(rights().line)" : ""
    return .error("\(seed) gives no slot map: \(RedisRefusal.advice(error))\(needs)")
  }

  private func examineWithReplicas(_ master: ServerAddress) async -> [RedisFinding] {
    let (findings, replication) = await examine(master)
    return findings + (await examine(replicas: RedisExamination.replicas(by: replication)))
  }

  /// Examines the servers that may become masters. Users, rights and settings are each server's own: none is
  /// replicated.
  private func examine(replicas: [ServerAddress]) async -> [RedisFinding] {
    var found: [RedisFinding] = []
    for replica in replicas {
      found += await examine(replica, isReplica: true).findings.map {
        .warning("after a failover: replica \($0.text)")
      }
    }
    return found
  }

  private static func replicas(by reply: RedisValue?) -> [ServerAddress] {
    (reply?.text ?? "").split(whereSeparator: \.isNewline).compactMap { line in
      guard line.hasPrefix("slave"), let value = line.split(separator: ":", maxSplits: 1).last else {
        return nil
      }
      var parts: [Substring: Substring] = [:]
      for part in value.split(separator: ",") {
        guard let equals = part.firstIndex(of: "=") else { continue }
        parts[part[..<equals]] = part[part.index(after: equals)...]
      }
      guard let host = parts["ip"], let port = parts["port"].flatMap({ Int($0) }) else { return nil }
      return .tcp(host: String(host), port: port)
    }
  }

  private func rights(tag: String = "check") -> RedisRights {
    RedisRights(
      namespace: settings.namespace, user: settings.login.user, topology: settings.topology,
      demand: settings.demand, tag: tag)
  }

  private func conversation(_ address: ServerAddress) -> RedisConversation {
    RedisConversation(
      address: address, login: settings.login, timeout: settings.timeout,
      hasURL: settings.topology.isStandalone)
  }

  /// Examines one server that is to hold records, by keys with a hash tag of its slots, and returns its `INFO` besides.
  private func examine(
    _ address: ServerAddress, tag: String = "check", isReplica: Bool = false
  ) async -> (findings: [RedisFinding], replication: RedisValue?) {
    let rights = rights(tag: tag)
    let select = settings.database == 0 ? [] : [["SELECT", "\(settings.database)"]]
    let looks = select + [["INFO"], ["TIME"]]
    do throws(RedisConversation.Fault) {
      let conversation = try await conversation(address).replies(to: looks + rights.all.map(\.command))
      var replies = conversation.values
      // Without a login every command fails alike.
      if case .error(let text)? = replies.first, text.hasPrefix("NOAUTH") {
        return ([.error("\(address): \(RedisRefusal.advice(text))")], nil)
      }
      let tried = Array(replies.dropFirst(looks.count))
      replies = Array(replies.prefix(looks.count))
      var found: [RedisFinding] = []
      if !select.isEmpty, case .error(let text) = replies.removeFirst() {
        let advice = RedisRefusal.advice(text)
        found.append(.error("\(address): database \(settings.database) cannot be used: \(advice)"))
      }
      let (span, limit) = (conversation.firstAfter, settings.timeout)
      if span > limit {
        let excess = "\(span.count) ms, longer than store.timeout (\(limit.count) ms)"
        found.append(.error("\(address): its first reply took \(excess)"))
      }
      found += judge(address, info: replies[0], time: replies[1])
      if !isReplica { found += judge(address, role: replies[0]) }
      found += judge(address, rights, tried, isReplica: isReplica)
      return (found, replies[0])
    } catch {
      return ([.error("\(address) cannot be used: \(error.reason)")], nil)
    }
  }

  private func judge(_ address: ServerAddress, info: RedisValue, time: RedisValue) -> [RedisFinding] {
    var facts = RedisFacts()
    facts.take(info, to: .info)
    var found = facts.doubts.map {
      RedisFinding(isError: settings.requireDurable, text: "\(address): \($0)")
    }
    if !settings.topology.isCluster, info.info("cluster_enabled") == "1" {
      found.append(
        .error("\(address) is a node of a cluster: write topology: cluster, and nodes instead of url"))
    }
    if case .array(let parts) = time, let seconds = parts.first?.text.flatMap({ Int64($0) }),
      0...(1 << 40) ~= seconds, abs(seconds - now()) > Self.maxSkew
    {
      found.append(
        .warning("\(address): its clock differs from this machine's by \(abs(seconds - now())) s"))
    }
    return found
  }

  private func judge(_ address: ServerAddress, role reply: RedisValue) -> [RedisFinding] {
    if reply.info("role") == "slave" {
      return [.error("\(address) is a read-only replica: give the master's address")]
    }
    guard let demand = settings.demand, demand.replicas > 0, let text = reply.text else { return [] }
    let lines = text.split(whereSeparator: \.isNewline)
    let count = lines.count { $0.hasPrefix("slave") && $0.contains("state=online") }
    var found: [RedisFinding] = []
    if count < demand.replicas {
      found.append(
        .error("\(address): \(count) replicas follow it, fewer than store.replicas (\(demand.replicas))"))
    }
    if count == demand.replicas {
      found.append(
        .warning(
          "\(address): just \(count) replica\(count == 1 ? "" : "s") for store.replicas (\(demand.replicas)): without one of them nothing is claimed; add another"
        ))
    }
    if !lines.contains(where: { $0.hasPrefix("min_slaves_good_slaves:") }) {
      found.append(
        .warning(
          "\(address) takes changes without replicas, which a failover loses: set min-replicas-to-write \(demand.replicas)"
        ))
    }
    return found
  }

  private func judge(
    _ address: ServerAddress, _ rights: RedisRights, _ replies: [RedisValue], isReplica: Bool
  ) -> [RedisFinding] {
    let missing = rights.missing(by: replies)
    if !missing.isEmpty {
      return [
        .init(
          isError: missing.contains { !$0.isOptional },
          text:
            "\(address): Semel's user lacks \(missing.map(\.rule).joined(separator: " ")); all that it needs is: \(rights.line)"
        )
      ]
    }
    // A replica refuses changes, and refuses to wait for other replicas.
    guard !isReplica else { return [] }
    // Any other error of a harmless command would hit commands on records, too, but a cluster's are about other slots.
    let faults = zip(rights.all, replies).compactMap { right, reply -> String? in
      guard case .error(let text) = reply, ClusterRefusal(text, from: address) == nil, !right.isOptional,
        !RedisRefusal.isScriptMissing(text), !RedisRefusal.isDemotion(text)
      else { return nil }
      return RedisRefusal.advice(text)
    }
    return faults.first.map { [.error("\(address): \($0)")] } ?? []
  }
}
