import NIOCore

/// One thing that a client wants done once.
final class Intent {
  let number: Int
  let caller: String
  let key: String
  let rule: Rule
  var payloads: [String]
  var dice: Dice

  init(_ number: Int, seed: UInt64) {
    self.number = number
    dice = Dice(seed, "intent", number)
    rule = dice.kind(of: Self.shares(seed)) ?? .retry
    caller = "caller\(number % 7)"
    // Two callers use the same key now and then, for things of their own.
    key = "k\(number % 50 == 49 ? number - 1 : number)"
    payloads = [rule == .remove ? "" : "{\"item\": \(number)}"]
    // Each world has some of which there are two.
    if rule != .remove, number % 10 == 3 || dice.chance(0.06) {
      payloads.append("{\"item\": \(number), \"other\": true}")
    }
  }

  /// The shares of the routes, one of which has most of the intents in some worlds.
  private static func shares(_ seed: UInt64) -> [(Rule, Double)] {
    var (shares, dice): ([(Rule, Double)], Dice) = (
      [(.hold, 26), (.repeat, 11), (.ask, 20), (.capped, 8), (.remove, 8), (.quick, 6), (.retry, 21)],
      Dice(seed, "routes")
    )
    if dice.chance(0.4) { shares.insert((shares[dice.below(shares.count)].0, 50), at: 0) }
    return shares
  }

  var record: String { "\(caller)|/\(rule.rawValue)|\(key)" }

  /// - Parameter delivery: The number of the delivery, which Semel passes on.
  func request(_ payload: Int, delivery: Int = 0) -> String {
    let body = payloads[payload]
    return """
      \(rule == .remove ? "DELETE" : "POST") /\(rule.rawValue) HTTP/1.1\r
      Host: shop.example\r
      Authorization: \(caller)\r
      Idempotency-Key: \(key)\r
      X-Shop: main\r
      X-Delivery: \(delivery)\r
      Content-Type: application/json\r
      Content-Length: \(body.utf8.count)\r
      \r
      \(body)
      """
  }
}

/// One connection of a client to a node.
private final class ClientConnection: EndOwner {
  private let end: End
  private var reader = HTTPReader(isClient: true)
  private var unsent = ByteBuffer()
  private var ended: ((HTTPMessage?) -> Void)?

  init(_ end: End) { self.end = end }

  var isOver: Bool { end.isOver || end.hasEnded }

  func request(_ text: String, _ ended: @escaping (HTTPMessage?) -> Void) {
    self.ended = ended
    end.owner = self
    unsent.writeString(text)
    becameWritable(end)
    if end.hasBytes || isOver { arrived(at: end) }
  }

  func becameWritable(_ end: End) { unsent.moveReaderIndex(forwardBy: end.send(unsent)) }

  func arrived(at end: End) {
    while let bytes = end.read() { reader.feed(bytes) }
    if let response = reader.next(hasEnded: end.hasEnded) { return finish(response) }
    if isOver {
      finish(nil)
      end.close()
    }
  }

  private func finish(_ response: HTTPMessage?) {
    let ended = ended
    self.ended = nil
    ended?(response)
  }

  /// Goes away without a word to the node's owner.
  func abort() {
    ended = nil
    end.reset()
  }

  func close() { end.close() }
}

/// Clients as they are: they time out, hang up, tap twice, retry through another node, and err in their payloads.
final class Clients: @unchecked Sendable {
  unowned let world: World
  private var dice: Dice
  private var deliveries = 0
  private var idle: [Int: [ClientConnection]] = [:]
  /// The share of clients that wait for longer than a node does.
  private let patient: Double
  /// The loop of the connections over HTTP/2, and the one that is in use to each node.
  private let loop: SimLoop
  private var shared: [Int: HTTP2ClientConnection] = [:]

  init(of world: World) {
    self.world = world
    dice = Dice(world.seed, "clients")
    patient = dice.chance(0.6) ? 0.9 : 0.2
    loop = SimLoop(on: Machine("clients", on: world.schedule, &dice))
  }

  var schedule: Schedule { world.schedule }

  /// Makes one delivery, and calls back with what it brought.
  func deliver(
    _ intent: Intent, _ payload: Int, to chosen: Int? = nil, timeOut: Span, hangUp: Double? = nil,
    _ ended: @escaping (Finding) -> Void
  ) {
    let (node, begun) = (chosen ?? intent.dice.below(world.nodes.count), schedule.now)
    let judge = world.judge
    judge.begun(intent.record, intent.payloads[payload], at: node)
    judge.note(judge.records[intent.record], "a client delivers to node \(node)")
    deliveries += 1
    exchange(intent.request(payload, delivery: deliveries), with: node, timeOut, hangUp) { response in
      let finding = response.map { Finding($0) } ?? Finding()
      judge.delivered(intent.record, intent.payloads[payload], begun: begun, by: node, finding)
      ended(finding)
    }
  }

  /// Sends a request to a node, and calls back once with the response, or without one.
  func exchange(
    _ text: String, with node: Int, _ timeOut: Span, _ hangUp: Double?,
    _ ended: @escaping (HTTPMessage?) -> Void
  ) {
    var isOver = false
    let end = { (response: HTTPMessage?) in
      guard !isOver else { return }
      isOver = true
      ended(response)
    }
    if world.plan.hasHTTP2Clients, dice.chance(0.5) {
      return exchangeOverHTTP2(text, with: node, timeOut, hangUp, end)
    }
    var isConnected = false
    schedule.after(Span(seconds: 2)) { if !isConnected { end(nil) } }
    connection(to: node) { [self] connection in
      isConnected = true
      guard let connection else { return end(nil) }
      guard !isOver else { return connection.close() }
      send(text, on: connection, to: node, timeOut, hangUp, end)
    }
  }

  private func send(
    _ text: String, on connection: ClientConnection, to node: Int, _ timeOut: Span,
    _ hangUp: Double?,
    _ end: @escaping (HTTPMessage?) -> Void
  ) {
    if let hangUp {
      // In the middle of its request, or while it waits.
      let count = max(1, Int(Double(text.utf8.count) * min(1, hangUp * 2)))
      connection.request(String(decoding: text.utf8.prefix(count), as: UTF8.self)) { _ in }
      schedule.after(Span(seconds: hangUp * 0.05)) {
        connection.abort()
        end(nil)
      }
      return
    }
    var isDone = false
    connection.request(text) { [self] response in
      isDone = true
      if let response { giveBack(connection, to: node, after: response) }
      end(response)
    }
    schedule.after(timeOut) {
      guard !isDone else { return }
      connection.abort()
      end(nil)
    }
  }

  private func connection(to node: Int, _ ready: @escaping (ClientConnection?) -> Void) {
    while let connection = idle[node]?.popLast() {
      if !connection.isOver { return ready(connection) }
    }
    world.network.connect(to: Rules.port(of: node)) { ready($0.map(ClientConnection.init)) }
  }

  private func giveBack(_ connection: ClientConnection, to node: Int, after response: HTTPMessage) {
    if response.fields["connection"] == "close" || dice.chance(0.2) {
      connection.close()
    } else {
      idle[node, default: []].append(connection)
    }
  }
}

// HTTP/2, on which many requests share a connection.
extension Clients {
  private func exchangeOverHTTP2(
    _ text: String, with node: Int, _ timeOut: Span, _ hangUp: Double?,
    _ end: @escaping (HTTPMessage?) -> Void
  ) {
    var reader = HTTPReader(isClient: false)
    reader.feed(ByteBuffer(string: text))
    guard let message = reader.next() else { preconditionFailure("Clients: a request in parts") }
    schedule.after(Span(seconds: 2) + timeOut) { end(nil) }
    sharedConnection(to: node) { [self] connection in
      guard let connection else { return end(nil) }
      let stream = connection.request(message, end)
      let patience = hangUp.map { Span(seconds: $0 * 0.05) } ?? timeOut
      // Some give up the request alone, some the connection.
      let cutsAll = dice.chance(hangUp == nil ? 0.5 : 0.2)
      schedule.after(patience) {
        guard stream.isWaiting else { return }
        stream.cancel()
        if cutsAll { connection.abort() }
        end(nil)
      }
    }
  }

  private func sharedConnection(
    to node: Int, _ ready: @escaping (HTTP2ClientConnection?) -> Void
  ) {
    if let connection = shared[node], !connection.isOver { return ready(connection) }
    world.network.connect(to: Rules.port(of: node)) { [self] end in
      guard let end else { return ready(nil) }
      let connection = HTTP2ClientConnection(end, on: loop)
      shared[node] = connection
      ready(connection)
    }
  }

  func dismantle() {
    loop.machine.kill()
    loop.end()
  }
}

// The life of an intent.
extension Clients {
  /// Delivers an intent until it has ended, or the client has had enough.
  func pursue(
    _ intent: Intent, attempt: Int = 0, pause: Double = 0.02, _ ended: @escaping () -> Void
  ) {
    let payload = attempt > 0 && intent.dice.chance(0.5) ? intent.payloads.count - 1 : 0
    var left = 1
    var mayRepeat = true
    let arrive = { [self] (finding: Finding) in
      left -= 1
      mayRepeat = mayRepeat && finding.isRetryable
      guard left == 0 else { return }
      guard mayRepeat, attempt < 7 else { return end(intent, ended) }
      schedule.after(intent.dice.span(0, pause)) { [self] in
        pursue(intent, attempt: attempt + 1, pause: min(1, pause * 2), ended)
      }
    }
    let isTwofold = intent.dice.chance(0.2)
    if isTwofold { left = 2 }
    let hangUp = intent.dice.chance(0.04) ? intent.dice.fraction() : nil
    // Some wait for a node that stands still.
    let patience = intent.dice.chance(patient) ? intent.dice.span(4, 8) : intent.dice.span(0.3, 3)
    deliver(intent, payload, timeOut: patience, hangUp: hangUp, arrive)
    if isTwofold {
      let other = intent.dice.below(intent.payloads.count)
      deliver(intent, other, timeOut: intent.dice.span(0.3, 3), arrive)
    }
  }

  /// Has some clients that wait deliver once more, soon and through another node or the same.
  ///
  /// - Parameter node: A node to which none of them comes; `nil` for none.
  func tapAgain(within span: ClosedRange<Double>, besides node: Int? = nil, _ dice: inout Dice) {
    let count = world.nodes.count
    for intent in world.intents {
      guard let record = world.judge.records[intent.record], record.deliveriesUnderWay > 0, dice.chance(0.5)
      else { continue }
      let patience = dice.chance(patient) ? dice.span(4, 8) : dice.span(0.5, 3)
      let other = node.map { ($0 + 1 + dice.below(count - 1)) % count }
      schedule.after(dice.span(span.lowerBound, span.upperBound)) { [self] in
        if world.isStorm { deliver(intent, 0, to: other, timeOut: patience) { _ in } }
      }
    }
  }

  private func end(_ intent: Intent, _ ended: @escaping () -> Void) {
    let isForgotten = world.plan.faults.contains(.forget) && intent.dice.chance(0.3)
    guard isForgotten || intent.dice.chance(0.25) else { return ended() }
    let payload = intent.dice.chance(0.3) ? intent.payloads.count - 1 : 0
    if isForgotten { forget(intent, payload) }
    deliver(intent, payload, timeOut: intent.dice.span(0.3, 3)) { [self] _ in
      guard isForgotten else { return ended() }
      schedule.after(intent.dice.span(0.6, 2)) { [self] in
        var left = world.nodes.count
        for node in world.nodes.indices {
          deliver(intent, 0, to: node, timeOut: intent.dice.span(0.3, 3)) { _ in
            left -= 1
            if left == 0 { ended() }
          }
        }
      }
    }
  }

  /// Has an operator remove an outcome that is on its way to clients, and to the caches of all nodes.
  private func forget(_ intent: Intent, _ payload: Int) {
    let operatorsNode = intent.dice.below(world.nodes.count)
    schedule.after(intent.dice.span(0, 0.0015)) { [world] in
      world.operators.forget(settled: intent.record, at: world.nodes[operatorsNode])
    }
    for node in world.nodes.indices {
      schedule.after(intent.dice.span(0, 0.0025)) { [self] in
        if world.isStorm { deliver(intent, payload, to: node, timeOut: intent.dice.span(0.3, 3)) { _ in } }
      }
    }
  }

  /// Delivers an intent in calm weather until it has ended, or a time is over.
  func conclude(
    _ intent: Intent, payload: Int = 0, until limit: Moment, _ ended: @escaping () -> Void
  ) {
    deliver(intent, payload, timeOut: Span(seconds: 10)) { [self] finding in
      if finding.word == "payload_mismatch", payload + 1 < intent.payloads.count {
        return conclude(intent, payload: payload + 1, until: limit, ended)
      }
      guard finding.isRetryable, schedule.now < limit else { return ended() }
      schedule.after(Span(seconds: 0.05)) { [self] in
        conclude(intent, payload: payload, until: limit, ended)
      }
    }
  }
}
