import Idempotency
import Logging
import NIOCore
import Platform
import Synchronization

/// The inspection of Redis while the connections are established, and the consequences of its findings for claims and
/// caches.
///
/// Confined to the subscriber's loop, except for the members that are marked as safe from any thread.
final class RedisInspector: @unchecked Sendable {
  private let context: EventLoopContext
  private let settings: RedisEndpointSettings
  private let keys: RedisKeys
  private let logger: Logger
  let epoch = RedisEpoch()
  let warnings: RedisWarnings
  private var timer: RepeatedTask?
  /// The connections of the event loops. Redis is inspected over those of the first.
  private(set) var loops: [RedisNodes] = []
  private var doubts: [String] = []
  /// The reason for which Semel may not publish, as last seen; `nil` if it may.
  private(set) var publishRefusal: String?
  private let doubtCount = Atomic<Int>(0)
  /// Called when Semel may publish no more, or again.
  var didChangePublishing: () -> Void = {}
  /// Called when Redis has lost its records.
  var didLoseRecords: () -> Void = {}

  init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger) {
    self.context = context
    self.settings = settings
    self.logger = logger
    keys = RedisKeys(namespace: settings.namespace)
    warnings = RedisWarnings(logger: logger)
  }

  /// The number of reasons for which this Redis may lose records or leave caches stale. Safe from any thread.
  var doubtsStanding: Int { doubtCount.load(ordering: .relaxed) }

  func start() {
    context.loop.assertInEventLoop()
    let interval = TimeAmount.milliseconds(settings.inspectionInterval.count)
    timer = context.loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in self.inspect() }
  }

  func close() {
    context.loop.assertInEventLoop()
    timer?.cancel()
    loops = []
    (didChangePublishing, didLoseRecords) = ({}, {})
  }

  /// Adds an event loop's connections.
  func enlist(_ nodes: RedisNodes) {
    context.loop.assertInEventLoop()
    loops.append(nodes)
  }

  private func inspect() {
    guard let nodes = loops.first else { return }
    nodes.context.loop.execute { [context] in
      nodes.inspect { inspection in
        guard let inspection else { return }
        nodes.tryClaims(besides: Array(inspection.epochs.keys)) { trial in
          guard let trial else { return }
          var findings = inspection
          findings.obstacle = findings.obstacle ?? trial.refusal
          context.loop.execute { [findings] in self.take(findings) }
        }
      }
    }
  }

  private func take(_ inspection: RedisInspection) {
    context.loop.assertInEventLoop()
    for (key, epoch) in inspection.epochs { found(epoch, under: key) }
    take(publishRefusal: inspection.publishRefusal)
    if doubts.isEmpty != inspection.doubts.isEmpty, inspection.doubts.isEmpty {
      logger.notice("Redis keeps its records again", metadata: ["after": "\(doubts.joined(separator: "; "))"])
    }
    if !settings.requireDurable {
      for doubt in inspection.doubts where !doubts.contains(doubt) { warnings.warn(doubt) }
    }
    doubts = inspection.doubts
    warnings.hinder(inspection.obstacle)
    count()
    judge()
  }

  /// Passes the present findings to every event loop.
  private func judge() {
    for nodes in loops { nodes.context.loop.execute { [doubts] in nodes.judge(doubts: doubts) } }
  }

  /// Takes an epoch that was read. Safe from any thread.
  func found(_ found: String, under key: String) {
    let finding = epoch.seen(found, under: key)
    if let loss = finding.loss { report(loss) }
    guard let successor = finding.successor else { return }
    replace(RedisEpoch.Replacement(key: key, epoch: found, successor: successor))
  }

  /// Takes that the records have expired because Redis' clock was set. Safe from any thread.
  func expired() {
    let (loss, replacement) = epoch.expired()
    report(loss)
    if let replacement { replace(replacement) }
  }

  private func replace(_ replacement: RedisEpoch.Replacement) {
    context.loop.execute {
      guard let nodes = self.loops.first else { return }
      nodes.context.task { [epoch = self.epoch] in
        let (key, found) = (replacement.key, replacement.epoch)
        // If this fails, the next inspection finds the same epoch.
        let present = try? await nodes.fact(
          .epoch, under: key, expected: found, value: replacement.successor)
        if let present { epoch.replaced(found, by: present, under: key) }
      }
    }
  }

  /// Logs a loss, empties the caches, and stops claims if `require_durable` is set. Safe from any thread.
  private func report(_ loss: String) {
    let effect =
      settings.requireDurable
      ? "no protected request runs until Semel is restarted (store.require_durable)"
      : "retries of their requests run again"
    logger.critical("recorded outcomes are gone, and \(effect)", metadata: ["what": "\(loss)"])
    context.loop.execute {
      self.didLoseRecords()
      self.judge()
    }
  }

  /// Takes the reason for which Semel may not publish; `nil` if it may.
  func take(publishRefusal refusal: String?) {
    context.loop.assertInEventLoop()
    let isChanged = (refusal == nil) != (publishRefusal == nil)
    if let refusal, publishRefusal == nil {
      logger.error(
        "Redis does not let Semel publish: other nodes may go on replaying forgotten and resolved records from their caches, and this node does not use its own; allow +publish on the channels \(keys.prefix)* and \(keys.invalidations)",
        metadata: ["reason": "\(refusal)"])
    } else if refusal == nil, publishRefusal != nil {
      logger.notice("Redis lets Semel publish again")
    }
    publishRefusal = refusal
    count()
    if isChanged { didChangePublishing() }
  }

  private func count() {
    doubtCount.store(doubts.count + (publishRefusal == nil ? 0 : 1), ordering: .relaxed)
  }
}

/// The replies to harmless forms of the commands that a claim consists of, by which an inspection finds that rights
/// were withdrawn from Semel's user.
///
/// Redis checks a command's rights before anything else. Other errors are left to `RedisInspection`. A claim itself
/// says less: its script fails with a text that each version of Redis words in another way.
struct ClaimTrial: Equatable {
  /// The reason for which no claim can be made; `nil` if none was found.
  var refusal: String?
  /// Whether the server has lost the script of a claim, which is sent whole then.
  private var lacksScript = false

  /// The commands, in the order in which `take` gets their replies.
  ///
  /// - Parameters:
  ///   - key: A key that does not exist, and that none of the commands creates.
  ///   - digest: The digest of the script of a claim, which ends at once because its deadline is over.
  static func commands(key: String, digest: String) -> [[String]] {
    [
      ["EVALSHA", digest, "1", key, "", "0"], ["EVAL", "return 1", "1", key], ["TIME"], ["GET", key],
      ["SET", key, "", "XX", "PX", "1"],
    ]
  }

  mutating func take(_ reply: RedisValue, to command: String, namespace: String) {
    guard case .error(let text) = reply else { return }
    if command == "EVALSHA", RedisRefusal.isScriptMissing(text) { lacksScript = true }
    guard refusal == nil, text.hasPrefix("NOPERM"), command != "EVAL" || lacksScript else { return }
    let isAboutKeys = text.contains("keys") || text.contains("access a key")
    let (right, rule) =
      isAboutKeys
      ? ("the keys of \(namespace)", "~\(namespace):*") : (command, "+\(command.lowercased())")
    refusal = "Redis forbids \(right) to Semel's user: allow \(rule) in its ACL (\(text))"
  }
}

extension RedisNodes {
  /// Tries the commands of a claim at every server, and calls `onEnd` with the trial that found a reason, if there is
  /// one, or with `nil` if no server has replied.
  ///
  /// - Parameter epochKeys: The keys of the servers' epochs that could be read.
  fileprivate func tryClaims(besides epochKeys: [String], _ onEnd: @escaping (ClaimTrial?) -> Void) {
    context.loop.assertInEventLoop()
    let nodes = (single.map { [$0] } ?? masters).filter(\.link.isUp)
    guard !nodes.isEmpty else { return onEnd(nil) }
    var (left, all): (Int, ClaimTrial?) = (nodes.count, nil)
    for node in nodes {
      node.tryClaim(key: trialKey(at: node, besides: epochKeys)) { trial in
        left -= 1
        if let trial, all?.refusal == nil { all = trial }
        if left == 0 { onEnd(all) }
      }
    }
  }

  /// Returns a key in the form of a record's, which no record has. In a cluster it has the slot of the server's epoch;
  /// if that is not known, the server may refuse it for its slot, but only after it has checked the rights.
  private func trialKey(at node: RedisPipeline, besides epochKeys: [String]) -> String {
    let epochKey = epochKeys.first {
      $0.hasPrefix(keys.prefix) && map?[SlotMap.slot(of: $0)] == node.link.address
    }
    guard let epochKey, let end = epochKey.lastIndex(of: "}") else { return keys.prefix + "trial}" }
    return String(epochKey[...end])
  }
}

extension RedisPipeline {
  /// Tries the commands of a claim, and calls `onEnd` with the result, or with `nil` if the connection was lost
  /// meanwhile.
  fileprivate func tryClaim(key: String, _ onEnd: @escaping (ClaimTrial?) -> Void) {
    guard let claimDigest else { return onEnd(nil) }
    let commands = ClaimTrial.commands(key: key, digest: claimDigest)
    var trial: ClaimTrial? = ClaimTrial()
    for (index, command) in commands.enumerated() {
      query(command) { [self] reply in
        if let reply {
          trial?.take(reply, to: command[0], namespace: settings.namespace)
        } else {
          trial = nil
        }
        guard index == commands.count - 1 else { return }
        if let refusal = trial?.refusal { trial?.refusal = named([refusal])[0] }
        onEnd(trial)
      }
    }
  }
}
