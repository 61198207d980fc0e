import Idempotency
import Logging
import NIOCore
import Platform
import Wire

/// The slot map of a cluster, and the connections that follow it.
extension RedisNodes {
  private static let slots = ["CLUSTER", "SLOTS"]
  /// The first and the largest pause while a node cannot be reached or a slot is not served.
  private static let firstPause: Int64 = 250
  private static let maxPause: Int64 = 500

  func mapped(_ slot: Int) -> RedisPipeline? { map?[slot].map(pipeline(at:)) }

  var masters: [RedisPipeline] { map.map { $0.masters.map(pipeline(at:)) } ?? [] }

  func refused(_ refusal: ClusterRefusal) {
    counters.redirected(refusal.kind)
    switch refusal {
    case .moved(let slot, let target):
      guard map?[slot] != target else { return }
      if let known = pipelines[target] { connectAgainIfPromoted(known) }
      map?.assign(slot, to: target)
      readMap()
    case .down: readMap()
    case .ask, .tryAgain, .loading: break
    }
  }

  /// Ends the connection to a master that may have been a replica: no claim may reach it before its history is read.
  private func connectAgainIfPromoted(_ node: RedisPipeline) {
    guard node.mayBeReplica, node.link.isUp else { return }
    node.link.fail("it has become a master, and its history has to be read anew")
  }

  func clusterChanged() {
    guard !isClosed else { return }
    if map == nil { readMap() }
    publishStatus()
    watchMap()
    changed()
  }

  /// Reads the slot map, unless a reply is awaited, from each node in turn: one that has lost the others may have an
  /// old one.
  func readMap() {
    let sources = pipelines.values.filter(\.link.isUp).sorted { $0.name < $1.name }
    // Every known master may be a replica by now.
    if sources.isEmpty { connectToSeeds() }
    guard !isReadingMap, !sources.isEmpty else { return }
    isReadingMap = true
    readingTurn += 1
    let source = sources[readingTurn % sources.count]
    source.query(Self.slots) { [self] reply in
      isReadingMap = false
      guard let reply, let address = source.link.address, !isClosed else { return }
      if let read = SlotMap(reply, from: address), !read.masters.isEmpty {
        adopt(read)
      } else if map == nil {
        mapFault = Self.fault(of: reply, from: address)
      }
    }
  }

  func connectToSeeds() {
    guard case .cluster(let seeds) = settings.topology else { return }
    for seed in seeds { _ = pipeline(at: seed) }
  }

  private static func fault(of reply: RedisValue, from address: ServerAddress) -> String {
    guard case .error(let text) = reply else {
      return "the node at \(address) knows of no slot that is served"
    }
    return "Redis at \(address) is no node of a cluster: the store's topology must say so (\(text))"
  }

  private func adopt(_ read: SlotMap) {
    let before = Set(map?.masters ?? [])
    map = read
    mapFault = nil
    let masters = Set(read.masters)
    for (address, pipeline) in pipelines where !masters.contains(address) && pipeline.isIdle {
      pipelines[address] = nil
      pipeline.close()
    }
    for address in before.subtracting(masters) { pipelines[address]?.mayBeReplica = true }
    counters.keepNodes(Set(pipelines.values.map(\.name)))
    for master in masters {
      let node = pipeline(at: master)
      connectAgainIfPromoted(node)
      if !before.contains(master), node.link.isUp { node.readHistory() }
    }
    subscriber.learn(read.masters, by: self)
    publishStatus()
    changed()
  }

  /// Reads the map again until every slot has a master with a connection.
  func watchMap() {
    guard trouble == nil, !isClosed else { return }
    guard isTroubled else {
      troublePause = Self.firstPause
      return
    }
    trouble = context.loop.scheduleTask(in: .milliseconds(troublePause)) { [self] in
      trouble = nil
      troublePause = min(troublePause * 2, Self.maxPause)
      if isTroubled { readMap() }
      watchMap()
    }
  }

  private var isTroubled: Bool {
    guard let map else { return true }
    // A master that is being connected for the first time has no outage yet.
    return map.uncoveredCount > 0 || masters.contains { $0.link.outage != nil }
  }

  private var shortage: String? {
    masters.compactMap { master in master.waits?.shortage.map { "\(master.name): \($0)" } }.first
  }

  private func publishStatus() {
    counters.publish(topology: topologyText)
    if let refusal = all.compactMap(\.refusal).first(where: \.isOfStore) {
      counters.monitor.refuses(refusal.text)
    } else if map == nil {
      let reasons = all.compactMap { $0.link.outage?.reason }.sorted()
      counters.monitor.fails(
        mapFault ?? reasons.first ?? "no node of the cluster has named the slots' masters yet")
    } else if let shortage {
      counters.monitor.fails(shortage)
    } else if let down = masters.first(where: { !$0.link.isUp }) {
      counters.monitor.fails(down.link.outage?.reason ?? "\(down.name) is not connected yet")
    } else if let obstacle = masters.compactMap(\.conditions.facts.obstacle).first {
      counters.monitor.hinders(obstacle)
    } else {
      counters.monitor.serves()
    }
  }
}
