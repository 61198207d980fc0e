import Idempotency
import Logging
import NIOCore
import Platform
import Synchronization

/// The inspection of Redis over its connections, and the consequences for claims and caches. Confined to the
/// subscriber's loop, except for the members that are marked as safe from any thread.
final class RedisInspector: @unchecked Sendable {
  private let context: EventLoopContext
  private let settings: RedisEndpointSettings
  private let keys: RedisKeys
  private let logger: Logger
  let epoch = RedisEpoch()
  let warnings: RedisWarnings
  private var timer: RepeatedTask?
  /// The connections of the event loops, the first of which is inspected over.
  private(set) var loops: [RedisNodes] = []
  private(set) var facts = RedisFacts() {
    didSet {
      doubtCount.store(facts.doubts.count + (facts.publishRefusal == nil ? 0 : 1), ordering: .relaxed)
    }
  }
  private let doubtCount = Atomic<Int>(0)
  /// Semel may publish no more, or again.
  var didChangePublishing: () -> Void = {}
  var didLoseRecords: () -> Void = {}

  init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger) {
    self.context = context
    self.settings = settings
    self.logger = logger
    keys = RedisKeys(namespace: settings.namespace)
    warnings = RedisWarnings(logger: logger)
  }

  /// Safe from any thread.
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

  func enlist(_ nodes: RedisNodes) {
    context.loop.assertInEventLoop()
    loops.append(nodes)
  }

  private func inspect() {
    guard let nodes = loops.first else { return }
    nodes.context.loop.execute { [context] in
      nodes.inspect { facts in
        if let facts { context.loop.execute { self.take(facts) } }
      }
    }
  }

  private func take(_ new: RedisFacts) {
    context.loop.assertInEventLoop()
    for (key, epoch) in new.epochs { found(epoch, under: key) }
    take(publishRefusal: new.publishRefusal)
    if !facts.doubts.isEmpty, new.doubts.isEmpty {
      logger.notice(
        "Redis keeps its records again", metadata: ["after": "\(facts.doubts.joined(separator: "; "))"])
    }
    if !settings.requireDurable {
      for doubt in new.doubts where !facts.doubts.contains(doubt) { warnings.warn(doubt) }
    }
    log(new.obstacle, after: facts.obstacle)
    facts = new
    judge()
  }

  private func log(_ obstacle: String?, after before: String?) {
    if let obstacle, before == nil {
      logger.error(
        "Redis takes no changes: recorded outcomes are replayed, and nothing else runs",
        metadata: ["reason": "\(obstacle)"])
    } else if let before, obstacle == nil {
      logger.notice("Redis takes changes again", metadata: ["after": "\(before)"])
    }
  }

  private func judge() {
    for nodes in loops { nodes.context.loop.execute { [facts] in nodes.judge(facts) } }
  }

  /// Takes an epoch that was read. Safe from any thread.
  func found(_ found: String, under key: String) { take(epoch.seen(found, under: key)) }

  /// Takes that the records have expired because Redis' clock was set. Safe from any thread.
  func expired() { take(epoch.expired()) }

  private func take(_ finding: RedisEpoch.Finding) {
    if let loss = finding.loss { report(loss) }
    if let replacement = finding.replacement { replace(replacement) }
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

  func take(publishRefusal refusal: String?) {
    context.loop.assertInEventLoop()
    let before = facts.publishRefusal
    facts.publishRefusal = refusal
    guard (refusal == nil) != (before == nil) else { return }
    if let refusal {
      logger.error(
        "Redis does not let Semel publish: other nodes may go on replaying forgotten and resolved records from their caches, and this node does not use its own; allow +publish on the channels \(keys.prefix)* and \(keys.invalidations)",
        metadata: ["reason": "\(refusal)"])
    } else {
      logger.notice("Redis lets Semel publish again")
    }
    didChangePublishing()
  }
}
