import Idempotency
import Logging
import NIOCore
import Platform
import Wire

/// The connections of the process to the Sentinels, which lead its other connections to the master. It asks one twice a
/// second, whatever becomes of the push. Confined to its loop, except for the members marked as safe from any thread.
final class SentinelMonitor: RedisLinkUser, @unchecked Sendable {
  private static let interval: TimeAmount = .milliseconds(500)
  private static let maxWait: Milliseconds = 450

  private let context: EventLoopContext
  private let logger: Logger
  private let command: [String]
  private let link: RedisLink
  private let news: SentinelNews
  private var machine: SentinelDiscovery
  private var followers: [RedisLink] = []
  private var beat: RepeatedTask?
  private var requestedAt: BootInstant?
  private var hasMaster = false
  private var isLeaving = false

  /// Creates the monitor, which begins to connect at once.
  init(
    context: EventLoopContext, settings: RedisEndpointSettings, sentinels: [ServerAddress],
    master: String, login: RedisLogin, logger: Logger
  ) {
    self.context = context
    self.logger = logger
    machine = SentinelDiscovery(sentinels: sentinels, name: master)
    command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master]
    var own = settings
    own.login = login
    own.topology = .standalone
    own.address = sentinels[0]
    own.database = 0
    link = RedisLink(
      context: context, settings: own, purpose: .sentinel, address: own.address, logger: logger)
    news = SentinelNews(context: context, settings: own, logger: logger)
    link.user = self
    news.didSwitch = { [self] in perform(machine.switched($0)) }
    context.loop.execute { self.start() }
  }

  /// The number of times that another server became the master. Safe from any thread.
  var failovers: Int { link.counters.failovers }

  /// Leads a connection to the master, now and after each change, before it is started.
  func lead(_ follower: RedisLink) {
    follower.didFail = { [self] in masterFailed($0, $1) }
    follower.didConnect = { [self] in masterServes() }
    context.loop.execute {
      self.followers.append(follower)
      if let master = self.machine.master { Self.move(follower, to: master) }
    }
  }

  /// Takes a connection's failure to use the master. Safe from any thread.
  func masterFailed(_ address: ServerAddress, _ reason: String) {
    context.loop.execute { self.perform(self.machine.refuted(address, reason)) }
  }

  /// Takes a connection to the master. Safe from any thread.
  private func masterServes() {
    context.loop.execute { self.machine.confirmed() }
  }

  /// Safe from any thread.
  func close() {
    context.loop.execute {
      self.beat?.cancel()
      self.followers = []
      self.news.link.close()
      self.link.close()
    }
  }

  private func start() {
    context.loop.assertInEventLoop()
    link.start()
    news.link.start()
    beat = context.loop.scheduleRepeatedTask(initialDelay: Self.interval, delay: Self.interval) { _ in
      self.query()
    }
  }

  private func perform(_ action: SentinelDiscovery.Action) {
    context.loop.assertInEventLoop()
    switch action {
    case .wait: break
    case .query: query()
    case .use(let master):
      logger.notice(
        "Sentinel names the master", metadata: ["master": "\(master)", "sentinel": "\(machine.sentinel)"])
      if hasMaster { link.counters.failedOver() }
      hasMaster = true
      for follower in followers { Self.move(follower, to: master) }
    case .pause(let reason):
      for follower in followers {
        follower.context.loop.execute { follower.lacksAddress(because: reason) }
      }
    }
  }

  private static func move(_ follower: RedisLink, to master: ServerAddress) {
    follower.context.loop.execute { follower.move(to: master) }
  }

  private func query() {
    context.loop.assertInEventLoop()
    guard link.address == machine.sentinel else {
      isLeaving = true
      link.move(to: machine.sentinel)
      news.link.move(to: machine.sentinel)
      isLeaving = false
      return
    }
    guard link.isUp else { return }
    let now = BootInstant.now
    if let requestedAt {
      if now - requestedAt > Self.maxWait { link.fail("no reply to a query") }
      return
    }
    requestedAt = now
    machine.queried()
    link.append { $0.writeCommand(command) }
  }

  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String? {
    query()
    return nil
  }

  func linkReceived(_ reply: borrowing HiredisReply) {
    requestedAt = nil
    perform(machine.received(reply.value))
  }

  func linkIsDown(_ reason: String) {
    requestedAt = nil
    if !isLeaving { perform(machine.failed(reason)) }
  }
}

/// The subscription to pushes about new masters. Confined to its loop.
private final class SentinelNews: RedisLinkUser {
  let link: RedisLink
  private let logger: Logger
  var didSwitch: (String) -> Void = { _ in }

  init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger) {
    self.logger = logger
    link = RedisLink(
      context: context, settings: settings, purpose: .sentinel, address: settings.address, logger: logger)
    link.user = self
  }

  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String? {
    link.append { $0.writeCommand(["SUBSCRIBE", "+switch-master"]) }
    return nil
  }

  func linkReceived(_ reply: borrowing HiredisReply) {
    switch reply.value {
    case .array(let parts) where parts.count == 3 && parts[0] == .text("message"):
      if let payload = parts[2].text { didSwitch(payload) }
    case .error(let reason):
      logger.warning(
        "Sentinel refuses to announce new masters, so that queries alone find them",
        metadata: ["reason": "\(reason)"])
    default: break
    }
  }

  func linkIsDown(_ reason: String) {}
}
