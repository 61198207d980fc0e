import NIOCore
import NIOSSL
import Platform

/// Carries out scripts. It decides nothing about them.
struct ScriptRunner: Sendable {
  /// The pauses between two deliveries of `settle`, and their number.
  private static let settlePause = Duration.milliseconds(250)
  private static let settleAttempts = 40

  let composer: Composer
  let tls: NIOSSLContext?
  private var setup: Setup { composer.setup }

  /// The requests of a script and their outcomes. Throws once the endpoint is not reached any more.
  func run(_ script: Script) async throws(NotReached) -> Evidence {
    var progress = Progress(keys: FreshKeys.make(["a", "b"]))
    let before = try await executions()
    for step in script.steps { try await run(step, &progress) }
    var evidence = Evidence(
      exchanges: progress.exchanges, documentation: progress.documentation, expected: setup.expected)
    let after = try await executions()
    evidence.executions = setup.oracle.executions(before: before, after: after, in: evidence)
    evidence.oracleFault = before?.fault ?? after?.fault
    evidence.confidential = Confidential.texts(of: setup.payloads)
    return evidence
  }

  /// The state of one script's run.
  private struct Progress {
    let keys: [String: String]
    let start = ContinuousClock.now
    var exchanges: [Exchange] = []
    var documentation = Evidence.Documentation.notLooked

    init(keys: [String: String]) { self.keys = keys }
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

  /// Sends the request of a delivery on a connection of its own.
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
    var exchange = try await deliver(delivery, progress)
    for _ in 1..<Self.settleAttempts where exchange.response?.status == 409 {
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
