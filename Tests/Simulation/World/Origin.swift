import NIOCore

/// One request on its way through the backend.
protocol OriginExchange: AnyObject {
  /// Whether nobody waits for the response any more.
  var isOver: Bool { get }
  func respond(_ response: OriginResponse)
  /// Sends one more response behind it, in one piece with it.
  func respondTwice(_ response: OriginResponse, _ stray: OriginResponse)
  /// Sends one more response, to no request.
  func respondAgain(_ stray: OriginResponse)
  /// Sends the beginning of a response, and closes the connection some time later.
  func respondPartly(_ response: OriginResponse, _ luck: Double)
  /// Cuts the connection.
  func cut()
  /// A response that some servers send before they close an idle connection.
  func bidFarewell()
  // Of HTTP/2 alone.
  /// Resets the stream, after nothing or within a response.
  func reset()
  func resetWithin(_ response: OriginResponse, _ luck: Double)
  /// Refuses the stream, which is indeed not run.
  func refuse()
  /// Refuses it and all later ones.
  func turnAway()
  /// Takes no more after it.
  func leave()
}

/// One connection of a node to the backend.
protocol OriginConnection: AnyObject {
  var isOver: Bool { get }
  /// Ends it, unless anything is under way on it; later requests need another one.
  func turnOut()
}

extension OriginExchange {
  func respondAgain(_ stray: OriginResponse) {}
  func reset() { cut() }
  func resetWithin(_ response: OriginResponse, _ luck: Double) { respondPartly(response, luck) }
  func refuse() { cut() }
  func turnAway() { cut() }
  func leave() {}
}

/// A backend with random behaviour, which counts what it runs. Its kinds are those of `Tests/Faults/backend.py`.
final class Origin: @unchecked Sendable {
  enum Kind {
    case busy, slowBusy, rejected, slowRejected, failed, slow, sluggish, chunked, large
    case unread, cutAfter, cutInResponse, late, lateBusy, lateRejected, stalled, gateway, mesh, cdn,
      cdnAway
    case sentTwice, farewell, taken
    // Of HTTP/2 alone: the first two are not run.
    case refused, turnedAway, leaving, leavingCut, resetAfter, resetInResponse

    /// The status of a run, and what it means.
    var fate: (status: Int, end: Run.End) {
      switch self {
      case .busy, .slowBusy, .lateBusy: (503, .retry)
      case .rejected, .slowRejected, .lateRejected: (401, .rejected)
      case .failed: (500, .final)
      case .gateway: (502, .unknown)
      case .mesh, .cdnAway: (503, .unknown)
      case .cdn: (520, .unknown)
      case .cutAfter, .cutInResponse, .stalled, .leavingCut, .resetAfter, .resetInResponse:
        (201, .lost)
      default: (201, .final)
      }
    }

    /// The fields by which an intermediary shows itself.
    var fields: [(String, String)] {
      switch self {
      case .mesh: [("Server", "istio-envoy"), ("x-envoy-upstream-service-time", "3")]
      case .cdnAway: [("Via", "1.1 varnish"), ("X-Served-By", "cache-fra-1")]
      default: []
      }
    }
  }

  /// Shares of a hundred. Those of a healthy backend always apply: it, too, has errors and slow moments.
  static let healthy: [(Kind, Double)] = [
    (.busy, 2), (.rejected, 1), (.failed, 2), (.slow, 5), (.chunked, 5), (.large, 1),
  ]
  static let sick =
    healthy + [
      (.unread, 4), (.cutAfter, 4), (.cutInResponse, 4), (.late, 3), (.lateBusy, 1), (.stalled, 2),
      (.gateway, 3), (.lateRejected, 2), (.rejected, 3), (.sentTwice, 2), (.farewell, 2), (.mesh, 2),
      (.cdn, 2),
      (.cdnAway, 1), (.taken, 12), (.slow, 8), (.slowRejected, 3),
    ]

  /// Over HTTP/2 many requests share a connection: most faults are a stream's own, and a cut affects others, too.
  static let sick2 =
    healthy + [
      (.unread, 1), (.cutAfter, 1), (.cutInResponse, 1), (.late, 3), (.lateBusy, 1), (.stalled, 2),
      (.gateway, 3), (.lateRejected, 1), (.mesh, 2), (.cdn, 2), (.cdnAway, 1), (.taken, 12),
      (.slow, 8), (.refused, 4), (.turnedAway, 1), (.leaving, 1), (.leavingCut, 1), (.rejected, 3),
      (.resetAfter, 3), (.resetInResponse, 3), (.slowRejected, 3),
    ]
  /// The ends that a sick backend has more often on some routes: attempts that count, and that do not, where they are
  /// limited; attempts that it never got, and whose responses are lost, where it is queried about them; late words where
  /// it has little time; and any where attempts may overtake each other.
  static let frequent: [Rule: [(Kind, Double)]] = [
    .capped: [(.busy, 25), (.rejected, 8)], .ask: [(.unread, 25), (.cutAfter, 18)],
    .quick: [(.lateRejected, 10)], .retry: [(.busy, 10), (.slow, 15)],
    .remove: [(.busy, 10), (.slow, 15)],
  ]
  /// Losses, and refusals after them, of what may run again.
  static let wavering: [Rule: [(Kind, Double)]] = [
    .retry: [(.cutAfter, 40), (.busy, 40)], .remove: [(.cutAfter, 40), (.busy, 40)],
  ]
  /// Losses of what it is queried about.
  static let silent: [Rule: [(Kind, Double)]] = [.ask: [(.cutAfter, 40)]]
  /// Refusals, whose outcome is known: nothing may be held as unknown.
  static let refusing = healthy + [(.refused, 15), (.turnedAway, 3), (.leaving, 3)]
  /// Many responses take longer than a lease.
  static let slow: [(Kind, Double)] = [(.slow, 18), (.sluggish, 12)]

  /// Shares in which some kinds, by the seed, are far more frequent: what needs several of them at once is then met.
  func emphasised(_ shares: [(Kind, Double)]) -> [(Kind, Double)] {
    var (shares, dice) = (shares, Dice(seed, "emphasis"))
    guard dice.chance(0.6) else { return shares }
    for _ in 0..<(1 + dice.below(3)) { shares[dice.below(shares.count)].1 += 8 }
    return shares
  }

  let schedule: Schedule
  private let seed: UInt64
  let judge: Judge
  private var dice: Dice
  var shares = Origin.healthy
  /// Whether it runs some requests twice.
  var runsTwice = false
  private var visits: [String: Int] = [:]
  private var connections: [any OriginConnection] = []
  var serial = 0
  /// The body of the run that may have had an effect, by the request's id.
  private var effects: [String: (body: String, serial: Int, run: Run)] = [:]
  /// Whether it cannot be reached, and the way in which.
  var greeting: (@escaping (End) -> Void) -> Network.Greeting = { .accepts($0) }

  /// The loop of its connections over HTTP/2; `nil` if it speaks HTTP/1.1.
  private let loop: SimLoop?

  init(on network: Network, port: Int, seed: UInt64, judge: Judge, isHTTP2: Bool) {
    schedule = network.schedule
    self.seed = seed
    self.judge = judge
    dice = Dice(seed, "origin")
    loop = isHTTP2 ? SimLoop(on: Machine("backend", on: schedule, &dice)) : nil
    network.listen(at: port) { [unowned self] in greeting { self.accept($0) } }
  }

  private func accept(_ end: End) {
    connections.removeAll(where: \.isOver)
    guard let loop else {
      let connection = HTTP1OriginConnection(end, self)
      connections.append(connection)
      end.owner = connection
      return
    }
    let connection = HTTP2OriginConnection(end, self, on: loop)
    connections.append(connection)
    loop.execute {
      do { try connection.start() } catch { preconditionFailure("Origin: no HTTP/2: \(error)") }
    }
  }

  /// Ends all connections on which nothing is under way.
  func turnOut() {
    for connection in connections where !connection.isOver { connection.turnOut() }
  }

  func dismantle() {
    connections.removeAll()
    loop?.machine.kill()
    loop?.end()
  }

  /// Whether it is not itself: an item's result, or a statement, may be none.
  var isSick = false
  /// A call for its next run of a request that may run again; `nil` if nobody waits for that.
  var onRepeatable: ((Run) -> Void)?
  /// The moment at which a request's first owner goes on, by the request's id. The backend refuses a later attempt soon
  /// after that moment.
  var returns: [String: Moment] = [:]
  /// Its frequent behaviour on some routes, because of what else goes wrong in its world.
  var habits: [Rule: [(Kind, Double)]] = [:]

  /// The end of the n-th visit of a key, and dice for the rest, which depend on the seed alone.
  private func script(_ key: String, on rule: Rule?) -> (Kind?, Double, Dice) {
    let visit = visits[key, default: 0] + 1
    visits[key] = visit
    var dice = Dice(seed, "visit " + key, visit)
    // Over HTTP/2 a cut would affect others.
    let isFrequent = isSick && (loop == nil || rule != .ask)
    let frequent = isFrequent ? rule.flatMap { Self.frequent[$0] } ?? [] : []
    let usual = (rule.flatMap { habits[$0] } ?? []).filter { loop == nil || $0.0 != .cutAfter }
    return (dice.kind(of: usual + frequent + shares), dice.fraction(), dice)
  }

  /// Whether it is still at an earlier attempt of a request, and so may refuse this one.
  private func isBusy(with id: String) -> Bool {
    guard let run = effects[id]?.run, run.respondedAt == nil, let respondsAt = run.respondsAt else {
      return false
    }
    return schedule.now < respondsAt
  }

  func take(_ request: HTTPMessage, on exchange: any OriginExchange) {
    schedule.note(5)
    let key = request.fields["idempotency-key"] ?? ""
    let id = request.fields["idempotency-request-id"] ?? ""
    var (kind, luck, dice) = script(key, on: Rule(request))
    if isBusy(with: id), luck < 0.5 { (kind, luck) = (.busy, luck * 2) }
    if let moment = returns[id], schedule.now < moment { kind = .slowBusy }
    if kind == .unread { return exchange.cut() }
    if kind == .refused || kind == .turnedAway {
      judge.refused(request)
      return kind == .refused ? exchange.refuse() : exchange.turnAway()
    }
    if kind == .leaving { exchange.leave() }
    if request.path == Rule.batch.path {
      let (response, runs) = runBatch(request, kind, luck, dice)
      return send(response, of: runs, kind, luck, on: exchange)
    }
    if kind == .taken, let effect = effects[id] {
      return exchange.respond(
        OriginResponse(status: 422, body: "{\"taken\": \(effect.serial)}"))
    }
    let run = note(request, key, id, kind)
    if runsTwice, luck < 0.1 { _ = note(request, key, id, kind) }
    let body = body(of: run, request, kind, luck)
    run.content = body
    if let onRepeatable, run.end == .final, judge.records[run.record]?.rule.runsAgain == true {
      self.onRepeatable = nil
      onRepeatable(run)
    }
    if run.end != .retry, run.end != .rejected { effects[id] = (body, run.serial, run) }
    let fields = [("X-Run", "\(run.serial)")] + (kind?.fields ?? [])
    let response = OriginResponse(
      status: run.status, fields: fields, body: body, isChunked: kind == .chunked)
    send(response, of: [run], kind, luck, on: exchange)
  }

  private func note(_ request: HTTPMessage, _ key: String, _ id: String, _ kind: Kind?) -> Run {
    serial += 1
    var fate = kind?.fate ?? (201, .final)
    // It was deleted before, or there is nothing to delete.
    if request.path == Rule.remove.path, fate.end == .final, effects[id] != nil || kind == .failed {
      fate.status = 404
    }
    let caller = request.fields["authorization"] ?? ""
    let run = Run(
      serial: serial, record: "\(caller)|\(request.path)|\(key)", id: id,
      attempt: Int(request.fields["idempotency-attempt"] ?? "") ?? 0, payload: request.text,
      status: fate.status, end: fate.end, at: schedule.now)
    judge.ran(run)
    return run
  }

  /// The padding of the largest response. To make it anew for each one would take longer than all else that the
  /// backend does.
  private static let spaces = String(repeating: " ", count: 200_000)

  private func body(of run: Run, _ request: HTTPMessage, _ kind: Kind?, _ luck: Double) -> String {
    let padding = kind == .large ? 200_000 * luck : 600 * luck
    let caller = request.fields["authorization"] ?? ""
    return "{\"serial\": \(run.serial), \"caller\": \"\(caller)\", \"attempt\": \(run.attempt)}"
      + Self.spaces[..<Self.spaces.utf8.index(Self.spaces.startIndex, offsetBy: Int(padding))]
  }

  private func send(
    _ response: OriginResponse, of runs: [Run], _ kind: Kind?, _ luck: Double,
    on exchange: any OriginExchange
  ) {
    let timeOut = (runs.first.flatMap { judge.records[$0.record]?.rule } ?? .hold).responseTimeout.seconds
    let finishAfter = { [schedule] (seconds: Double, finish: @escaping () -> Void) in
      for run in runs { run.respondsAt = schedule.now + Span(seconds: seconds) }
      schedule.after(Span(seconds: seconds), finish)
    }
    let finish = { [judge] in
      guard !exchange.isOver else { return }
      runs.forEach(judge.responded)
      exchange.respond(response)
    }
    switch kind {
    case .cutAfter: schedule.after(Span(seconds: luck * 0.05)) { exchange.cut() }
    case .cutInResponse: exchange.respondPartly(response, luck)
    case .resetAfter: schedule.after(Span(seconds: luck * 0.05)) { exchange.reset() }
    case .resetInResponse: exchange.resetWithin(response, luck)
    case .leavingCut:
      exchange.leave()
      schedule.after(Span(seconds: luck * 0.05)) { exchange.cut() }
    case .stalled: break
    case .late, .lateBusy, .lateRejected:
      finishAfter(timeOut * (1.05 + luck * 0.7), finish)
    case .slow: finishAfter(luck * timeOut * 0.9, finish)
    case .sluggish: finishAfter(timeOut * (0.6 + luck * 0.3), finish)
    case .slowBusy:
      let moment = max(runs.first.flatMap { returns[$0.id] } ?? schedule.now, schedule.now)
      finishAfter(moment.seconds - schedule.now.seconds + luck * 0.9, finish)
    case .slowRejected: finishAfter(timeOut * (0.3 + luck * 0.55), finish)
    case .sentTwice:
      guard !exchange.isOver else { return }
      runs.forEach(judge.responded)
      let stray = OriginResponse(
        status: 201, fields: [("X-Run", "-1")],
        body: "{\"serial\": -1, \"caller\": \"\", \"attempt\": 1}")
      exchange.respondTwice(response, stray)
      // Another request may be on the connection by then, if the first one is overlooked.
      schedule.after(Span(seconds: luck * 0.05)) { exchange.respondAgain(stray) }
    case .farewell:
      finish()
      schedule.after(Span(seconds: luck * 0.3)) { exchange.bidFarewell() }
    default: finishAfter(luck * 0.02, finish)
    }
  }

  /// Its statement about a request whose response was lost; `nil` if it does not reply.
  func state(of id: String) -> (status: Int, body: String)? {
    if isSick, dice.chance(0.3) {
      return dice.chance(0.3) ? nil : (dice.chance(0.5) ? 404 : 500, "{}")
    }
    guard let effect = effects[id] else {
      judge.statedAbsence(of: id)
      return (404, "{\"state\": \"absent\"}")
    }
    return (200, effect.body)
  }
}
