import NIOCore
import NIOSSL
import Platform

/// Carries out scripts. It decides nothing about them.
struct ScriptRunner: Sendable {
  /// The pauses between two deliveries of `settle`, and between two readings of the oracle.
  private static let settlePause = Duration.milliseconds(250)
  private static let readingPause = Duration.milliseconds(100)

  let composer: Composer
  let tls: NIOSSLContext?
  private var pace = Pace()
  private var setup: Setup { composer.setup }

  init(composer: Composer, tls: NIOSSLContext?) {
    self.composer = composer
    self.tls = tls
  }

  /// Carries out the first run, and learns from it how fast the endpoint and its oracle are.
  mutating func runFirst() async throws(NotReached) -> Evidence {
    var progress = Progress(keys: FreshKeys.make(["a", "b"]))
    let before = try await executions()
    for step in Script.firstRun.steps { try await run(step, &progress) }
    var after = try await executions()
    if let first = progress.exchanges.first, first.response?.isSuccess == true {
      pace.response = first.ended - first.sent
      while let reading = after, reading == before, reading.fault == nil, progress.age < pace.patience {
        try? await Task.sleep(for: Self.readingPause)
        after = try await executions()
        // An oracle that never counts this run does not lag.
        pace.oracle = after == before ? .zero : progress.age - first.ended
      }
    }
    return evidence(progress, before, after)
  }

  /// The reason for which the oracle cannot be read; `nil` if it can, or if there is none with a URL of its own.
  func oracleFault() async throws(NotReached) -> String? { try await executions()?.fault }

  func run(_ script: Script) async throws(NotReached) -> Evidence {
    var progress = Progress(keys: FreshKeys.make(["a", "b"]))
    let before = try await executions()
    for step in script.steps { try await run(step, &progress) }
    return evidence(progress, before, try await finalExecutions(of: progress.exchanges))
  }

  private func evidence(_ progress: Progress, _ before: OracleReading?, _ after: OracleReading?) -> Evidence {
    var evidence = Evidence(
      exchanges: progress.exchanges, documentation: progress.documentation, expected: setup.expected)
    evidence.executions = setup.oracle.executions(before: before, after: after, in: evidence)
    evidence.oracleFault = before?.fault ?? after?.fault
    evidence.confidential = Confidential.texts(of: setup.payloads)
    return evidence
  }

  /// The speed of the endpoint and of its oracle, as the first run has shown it.
  private struct Pace {
    /// The time from a request to its response.
    var response = Duration.zero
    /// The time from a response until the oracle counts its run.
    var oracle = Duration.zero

    var patience: Duration { .seconds(10) + response * 3 }
  }

  private struct Progress {
    let keys: [String: String]
    let start = ContinuousClock.now
    var exchanges: [Exchange] = []
    var documentation = Evidence.Documentation.notLooked

    var age: Duration { ContinuousClock.now - start }
  }

  private func run(_ step: Step, _ progress: inout Progress) async throws(NotReached) {
    switch step {
    case .deliver(let delivery):
      progress.exchanges.append(try await deliver(delivery, progress))
    case .settle(let delivery):
      progress.exchanges.append(try await settle(delivery, progress))
    case .together(let deliveries):
      progress.exchanges += try await together(deliveries, progress)
    case .overlapping(let first, let others):
      progress.exchanges += try await overlapping(first, others, progress)
    case .hangUp(let delivery, let moment):
      progress.exchanges.append(try await hangUp(delivery, moment, progress))
    case .pipelined(let deliveries):
      progress.exchanges += try await pipelined(deliveries, progress)
    case .expiry:
      // A second more: clocks of two machines, and the time that a request takes.
      if let ttl = setup.ttl { try? await Task.sleep(for: ttl + .seconds(1)) }
    case .flood(let count):
      for _ in 0..<count {
        _ = try await deliver(Delivery(.fresh("flood")), Progress(keys: FreshKeys.make(["flood"])))
      }
    case .documentation:
      progress.documentation = await documentation(after: progress.exchanges)
    }
  }

  private func open(_ methods: [String], at endpoint: Endpoint? = nil) async throws(NotReached) -> Connection
  {
    let endpoint = endpoint ?? setup.endpoint
    return try await Connection.open(
      to: endpoint, tls: endpoint.isSecure ? tls : nil, methods: methods, within: setup.timeout)
  }

  private func send(
    _ delivery: Delivery, _ progress: Progress
  ) async throws(NotReached) -> (request: RawRequest, connection: Connection, sent: Duration) {
    let request = composer.request(delivery, keys: progress.keys)
    let connection = try await open([request.method])
    let sent = ContinuousClock.now - progress.start
    await connection.send(request.bytes)
    return (request, connection, sent)
  }

  private func deliver(_ delivery: Delivery, _ progress: Progress) async throws(NotReached) -> Exchange {
    let (request, connection, sent) = try await send(delivery, progress)
    return await exchange(request, on: connection, sent: sent, progress)
  }

  private func exchange(
    _ request: RawRequest, on connection: Connection, number: Int = 0, sent: Duration, _ progress: Progress
  ) async -> Exchange {
    let (outcome, instant) = await connection.outcome(number)
    await connection.close()
    return Exchange(request: request, outcome: outcome, sent: sent, ended: instant - progress.start)
  }

  private func settle(_ delivery: Delivery, _ progress: Progress) async throws(NotReached) -> Exchange {
    let deadline = ContinuousClock.now + pace.patience
    var exchange = try await deliver(delivery, progress)
    while exchange.response?.mayBeInFlight == true, ContinuousClock.now < deadline {
      try? await Task.sleep(for: Self.settlePause)
      exchange = try await deliver(delivery, progress)
    }
    return exchange
  }

  private func together(_ deliveries: [Delivery], _ progress: Progress) async throws(NotReached) -> [Exchange]
  {
    let requests = deliveries.map { composer.request($0, keys: progress.keys) }
    var connections: [Connection] = []
    for request in requests {
      let connection = try await open([request.method])
      await connection.send(request.bytes.dropLast())
      connections.append(connection)
    }
    let sent = ContinuousClock.now - progress.start
    await withTaskGroup { group in
      for (request, connection) in zip(requests, connections) {
        group.addTask { await connection.send(request.bytes.suffix(1)) }
      }
    }
    var exchanges: [Exchange] = []
    for (request, connection) in zip(requests, connections) {
      exchanges.append(await exchange(request, on: connection, sent: sent, progress))
    }
    return exchanges
  }

  private func overlapping(
    _ first: Delivery, _ others: [Delivery], _ progress: Progress
  ) async throws(NotReached) -> [Exchange] {
    let (request, connection, sent) = try await send(first, progress)
    try? await Task.sleep(for: setup.headStart)
    var later: [Exchange] = []
    for delivery in others { later.append(try await deliver(delivery, progress)) }
    return [await exchange(request, on: connection, sent: sent, progress)] + later
  }

  private func hangUp(
    _ delivery: Delivery, _ moment: Step.HangUp, _ progress: Progress
  ) async throws(NotReached) -> Exchange {
    let (request, connection, sent) = try await send(delivery, progress)
    switch moment {
    case .afterSending: break
    case .whileWaiting: try? await Task.sleep(for: setup.headStart)
    case .duringResponse: await connection.awaitFirstByte()
    }
    await connection.close()
    return Exchange(
      request: request, outcome: .abandoned, sent: sent, ended: ContinuousClock.now - progress.start)
  }

  private func pipelined(_ deliveries: [Delivery], _ progress: Progress) async throws(NotReached)
    -> [Exchange]
  {
    let requests = deliveries.map { composer.request($0, keys: progress.keys) }
    let connection = try await open(requests.map(\.method))
    let sent = ContinuousClock.now - progress.start
    await connection.send(requests.flatMap(\.bytes))
    var exchanges: [Exchange] = []
    for (number, request) in requests.enumerated() {
      let (outcome, instant) = await connection.outcome(number)
      exchanges.append(
        Exchange(request: request, outcome: outcome, sent: sent, ended: instant - progress.start))
    }
    await connection.close()
    return exchanges
  }

  private func get(_ endpoint: Endpoint) async throws(NotReached) -> Exchange.Outcome {
    let request = composer.get(endpoint)
    let connection = try await open([request.method], at: endpoint)
    await connection.send(request.bytes)
    let (outcome, _) = await connection.outcome()
    await connection.close()
    return outcome
  }

  private func executions() async throws(NotReached) -> OracleReading? {
    guard let oracle = setup.oracle, let endpoint = oracle.endpoint else { return nil }
    return oracle.reading(of: try await get(endpoint))
  }

  /// The reading of the oracle once no run of these exchanges can change it: where a response is missing, a run may
  /// continue, and the oracle may lag. The reading must be the same for longer than either takes.
  private func finalExecutions(of exchanges: [Exchange]) async throws(NotReached) -> OracleReading? {
    let mayRun = exchanges.contains { $0.response == nil }
    let unseenRun: Duration = mayRun ? setup.headStart + pace.response * 2 : .zero
    let quiet = pace.oracle * 2 + unseenRun
    var reading = try await executions()
    var since = ContinuousClock.now
    let deadline = since + quiet + pace.patience
    while reading != nil, reading?.fault == nil, ContinuousClock.now < since + quiet {
      guard ContinuousClock.now < deadline else {
        return .failed("its reading does not become stable after the last response")
      }
      try? await Task.sleep(for: Self.readingPause)
      let next = try await executions()
      if next != reading { (reading, since) = (next, ContinuousClock.now) }
    }
    return reading
  }

  private func documentation(after exchanges: [Exchange]) async -> Evidence.Documentation {
    let links = exchanges.compactMap(\.response).filter(\.isRefusal).compactMap(\.documentation)
    guard let link = links.last else { return .noLink }
    guard let place = setup.endpoint.resolving(link), place.hasSameOrigin(as: setup.endpoint) else {
      return .elsewhere(link)
    }
    do throws(NotReached) {
      return .fetched(place.url, try await get(place))
    } catch {
      return .fetched(place.url, .none("\(error)"))
    }
  }
}
