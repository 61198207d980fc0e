import Idempotency
import NIOCore
import Platform
import Wire

/// The connection of one event loop to one server for large responses, and for reading those that have keys of their
/// own: no other command waits behind their bytes. Confined to its loop.
///
/// Opened for the first of them, and closed with the connection for all other commands. It is given up, and its
/// commands with it, once no byte has passed for `RedisEndpointSettings.maxSilence`, which is long: what lies between
/// may hold bytes. After the time of one call the other connection is asked for a sign: it ends, and this one with it,
/// without.
final class RedisResponseLine: RedisLinkUser {
  typealias Receiver = (RedisPlainCommand.Reply) -> Void

  private static let looks: Int64 = 4

  private let main: RedisLink
  private let timeout: Milliseconds
  /// Nothing has passed for the time of a call.
  var needsSign: () -> Void = {}
  private var hasAsked = false
  private var link: RedisLink?
  private var unwritten: [(command: RedisPlainCommand, isAsking: Bool)] = []
  /// The receivers of the replies, in the order of the commands.
  private var receivers = CircularBuffer<Receiver?>()
  /// The bytes that had passed by the last look that found more.
  private var progress = (bytes: 0, at: BootInstant(nanoseconds: 0))
  private var replyDeadline = LateReplyDeadline()
  private var timer: LoopTimers.Token?

  init(beside main: RedisLink) {
    self.main = main
    timeout = main.settings.timeout
  }

  var isIdle: Bool { receivers.isEmpty }

  /// Writes a command, now or once there is a connection, after `ASKING` if wanted.
  func send(_ command: RedisPlainCommand, isAsking: Bool, onReply: @escaping Receiver) {
    main.context.loop.assertInEventLoop()
    let wasIdle = receivers.isEmpty
    if isAsking { receivers.append(nil) }
    receivers.append(onReply)
    if let link, link.isUp {
      write(command, isAsking: isAsking, to: link)
    } else {
      unwritten.append((command, isAsking))
    }
    let link = link ?? open()
    // A link that fails at once has ended the line.
    if wasIdle, self.link === link { watch(link) }
  }

  func close() { end("the connection to Redis has ended") }

  private func open() -> RedisLink {
    let link = RedisLink(
      context: main.context, settings: main.settings, purpose: .responses, address: main.address,
      isOnly: false, presences: main.presences, logger: main.logger)
    link.user = self
    self.link = link
    link.start()
    return link
  }

  private func write(_ command: RedisPlainCommand, isAsking: Bool, to link: RedisLink) {
    if isAsking { link.append { $0.writeCommand(["ASKING"]) } }
    link.append { $0.writeCommand(capacity: command.capacity, command.write) }
  }

  private func end(_ reason: String) {
    if let timer { main.context.timers.stop(timer) }
    timer = nil
    let (before, orphans) = (link, receivers)
    link = nil
    receivers.removeAll(keepingCapacity: false)
    unwritten = []
    before?.user = nil
    before?.close()
    for orphan in orphans { orphan?(.lost(reason)) }
  }
}

extension RedisResponseLine {
  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String? {
    invariant(unwritten.count <= receivers.count, "commands are written whose replies nobody takes")
    let waiting = unwritten
    unwritten = []
    if let link { for (command, isAsking) in waiting { write(command, isAsking: isAsking, to: link) } }
    return nil
  }

  func linkReceived(_ reply: borrowing HiredisReply) {
    if let receiver = receivers.popFirst() {
      receiver?(RedisPlainCommand.Reply(reply))
    } else {
      link?.fail("Redis sent an unexpected reply")
    }
  }

  func linkReadAll() { replyDeadline.hasRead() }

  /// Ends the line, which the next command opens again.
  func linkIsDown(_ reason: String) { end(reason) }
}

extension RedisResponseLine {
  private func watch(_ link: RedisLink) {
    if let timer { main.context.timers.stop(timer) }
    noteProgress(link.passedBytes, at: .now)
    look(at: link, after: timeout / Self.looks)
  }

  private func noteProgress(_ bytes: Int, at now: BootInstant) {
    progress = (bytes, now)
    hasAsked = false
  }

  private func look(at link: RedisLink, after span: Milliseconds) {
    let due = BootInstant.now + span
    timer = main.context.timers.start(milliseconds: span.count) { [self] in
      timer = nil
      guard !receivers.isEmpty else { return }
      let (now, passed) = (BootInstant.now, link.passedBytes)
      if passed > progress.bytes { noteProgress(passed, at: now) }
      let silence = now - progress.at
      if silence >= timeout, !hasAsked {
        hasAsked = true
        needsSign()
      }
      guard silence >= max(link.settings.maxSilence, timeout) else {
        return look(at: link, after: timeout / Self.looks)
      }
      switch replyDeadline.verdict(due: due, now: now, hasUnread: link.hasUnread) {
      case .readUntil(let later): look(at: link, after: later - now)
      case .over: link.fail("no byte of a response has passed in \(silence.count) ms")
      }
    }
  }
}
