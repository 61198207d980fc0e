import Idempotency
import Logging
import NIOCore
import Platform
import Proxy
import Settings
import Store
import Telemetry
import Transport
import Wire

/// One process of Semel: its real parts on simulated loops, sockets and store.
final class Node: @unchecked Sendable {
  typealias Records = CachedStore<MeasuredStore<WorldStore>>

  /// Writes nothing, and costs a thread: the process has one.
  private static let sink = LogSink()
  /// The settings of earlier nodes, by their texts.
  nonisolated(unsafe) private static var known: [String: Settings] = [:]

  static func settings(_ text: String) -> Settings {
    if let known = known[text] { return known }
    switch Settings.load(text: text, file: "simulated", environment: [:]) {
    case .success(let settings):
      known[text] = settings
      return settings
    case .failure(let errors): preconditionFailure("\(errors)")
    }
  }

  let index: Int
  let machine: Machine
  let loops: [SimLoop]
  let contexts: [EventLoopContext]
  let sockets: SimSockets
  private let environment: ProxyEnvironment
  private let workers: [Worker<Records, HTTPUpstream>]
  let backends: [HTTPUpstream]
  let server: ProxyServer<Records, HTTPUpstream>
  let store: NodeStore
  let records: [Records]
  private let metrics: Metrics
  /// The number of the configuration in use.
  var variant: Int
  /// The settings of each configuration.
  private let variants: [Settings]
  var isDraining = false
  /// Called once, when the node has made a connection to the backend; `nil` if nobody waits for that.
  var onBackend: (() -> Void)?
  /// The first count that is not as it is while nothing happens; `nil` if everything is, or nobody has looked.
  private(set) var unrest: String?

  init(_ index: Int, of world: World, incarnation: Int) {
    self.index = index
    var dice = Dice(world.seed, "node \(index)", incarnation)
    let machine = Machine("node \(index)", on: world.schedule, &dice)
    self.machine = machine
    // The parts look at their clocks as they are made.
    machine.showClocks()
    let loops = (0..<(dice.chance(0.3) ? 2 : 1)).map { _ in SimLoop(on: machine) }
    self.loops = loops
    let sockets = SimSockets(on: world.network, machine: machine, loops: loops, dice)
    self.sockets = sockets
    sockets.onConnect = { [judge = world.judge, isHTTP2 = world.plan.isHTTP2] wire, end in
      if Rules.isStores(wire.port) { return judge.claims?.follow(wire, from: end, of: index) ?? () }
      judge.follow(wire, from: end, of: index, isHTTP2: isHTTP2)
    }
    let contexts = loops.map { EventLoopContext(loop: $0, sockets: sockets) }
    self.contexts = contexts
    variant = dice.below(Rules.variants)
    let variants = (0..<Rules.variants).map { variant in
      Self.settings(
        Rules.configuration(
          of: index, variant: variant, isHTTP2: world.plan.isHTTP2, store: world.storeConfiguration,
          hasShortMemory: world.plan.faults.contains(.shortMemory)))
    }
    self.variants = variants
    let (settings, logger) = (
      variants[variant],
      Self.logger(of: index, world.judge)
    )
    let metrics = Metrics(loops: loops.count)
    self.metrics = metrics
    let takeOvers = TakeOverPause(callTime: settings.store.timeout)
    environment = ProxyEnvironment(
      counters: metrics.counters, takeOvers: takeOvers, probe: SimProbe(world.origin, machine),
      logger: logger, makePool: { _ in SimPool(loops[0]) })
    let configuration = Self.snapshot(of: settings, metrics)
    let backends = contexts.map { HTTPUpstream(context: $0, loops: loops.count, logger: logger) }
    self.backends = backends
    let failures = StoreFailureLog(logger: logger)
    let environment = environment
    let store = NodeStore(of: world, settings.store, contexts, loops, logger)
    self.store = store
    let records = loops.indices.map { number in
      let measured = MeasuredStore(
        store.loops[number], metrics: metrics.loops[number], failures: failures, takeOvers: takeOvers)
      return CachedStore(measured, cache: store.cache)
    }
    self.records = records
    workers = loops.indices.map { number in
      Worker(
        context: contexts[number], store: records[number],
        backend: backends[number],
        environment: environment, configuration: configuration, metrics: metrics.loops[number])
    }
    let server = ProxyServer(workers: workers, environment: environment, group: loops[0])
    self.server = server
    store.observeAlarms { server.renewLeases() }
    let follow = sockets.onConnect
    sockets.onConnect = { [weak self] wire, end in
      follow(wire, end)
      guard let self, !Rules.isStores(wire.port), let onBackend else { return }
      self.onBackend = nil
      onBackend()
    }
  }

  private static func snapshot(
    of settings: Settings, _ metrics: Metrics
  ) -> ConfigurationSnapshot {
    ConfigurationSnapshot(
      routes: RouteTable(settings.routes, number: metrics.number(ofRoute:)),
      fallback: settings.onlyUpstream,
      limits: settings.limits,
      accessLog: AccessLog(sink: sink, format: .json, isEnabled: false),
      trustedProxies: settings.trustedProxies, unmatchedKeys: settings.unmatchedKeys,
      passesUnderscores: false)
  }

  /// The settings in use.
  var settings: Settings { variants[variant] }

  var configuration: ConfigurationSnapshot { Self.snapshot(of: settings, metrics) }

  var cache: LocalCache { store.cache }

  private static func logger(of node: Int, _ judge: Judge) -> Logger {
    Logger(label: "semel") { _ in
      if judge.keepsTimeline { return SimLog(judge, node: node) }
      return SwiftLogNoOpLogHandler()
    }
  }

  /// Begins to serve.
  func start() {
    let (server, context, port) = (server, contexts[0], Rules.port(of: index))
    loops[0].execute {
      context.task {
        let listener = Listener(.tcp(host: "127.0.0.1", port: port), mode: 0)
        guard let channel = try? await server.bind(listener) else { return }
        try? await server.startAccepting(on: channel)
      }
    }
  }

  /// Ends the process, or the whole machine with it.
  func kill(_ end: SimSockets.ProcessEnd) {
    machine.kill()
    onBackend = nil
    sockets.die(end)
    for loop in loops where SimLoop.current !== loop { loop.end() }
  }

  /// Looks a record up, past all caches, and calls back with what the store has, or why that is not known.
  func look(at id: RecordID, _ found: @escaping (Result<Standing, StoreError>) -> Void) {
    nonisolated(unsafe) let found = found
    let (store, context) = (store.loops[0], contexts[0])
    loops[0].execute {
      context.task {
        do throws(StoreError) { found(.success(try await store.find(id, reading: .state))) } catch {
          found(.failure(error))
        }
      }
    }
  }

  /// Looks on each loop whether anything is left to do: `unrest` states it later.
  func lookForUnrest() {
    unrest = nil
    for (loop, worker) in zip(loops, workers) {
      loop.execute { [self] in if !worker.isIdle { unrest = "a worker is not idle" } }
    }
    for gauge in [Counters.Gauge.inFlight, .waiting, .bodyBytes, .unreadBytes] {
      let value = environment.counters[gauge]
      if value != 0 { unrest = "\(gauge) is \(value)" }
    }
  }
}

/// Does the work of threads later on a loop.
private final class SimPool: WorkPool {
  private let loop: SimLoop

  init(_ loop: SimLoop) { self.loop = loop }

  func submit(_ work: @escaping @Sendable () -> Void) {
    let schedule = loop.machine.schedule
    schedule.after(schedule.dice.span(0, 0.005)) { [loop] in loop.execute(work) }
  }
}

/// Queries about unknown outcomes.
private final class SimProbe: OutcomeProbe, @unchecked Sendable {
  private let origin: Origin
  private let machine: Machine

  init(_ origin: Origin, _ machine: Machine) {
    self.origin = origin
    self.machine = machine
  }

  private static func trip(of schedule: Schedule, _ isSlow: Bool) -> Span {
    isSlow ? schedule.dice.span(0.4, 2.5) : schedule.dice.span(0.0002, 0.02)
  }

  func send(_ query: ProbeQuery) async -> ProbeResponse? {
    let schedule = origin.schedule
    let id = query.target.split(separator: "/").last.map(String.init) ?? ""
    let loop = SimLoop.current
    return await withUnsafeContinuation { continuation in
      // Some take long, while others query the backend as well.
      let isSlow = origin.isSick && schedule.dice.chance(0.6)
      let (way, back) = (Self.trip(of: schedule, isSlow && schedule.dice.chance(0.3)), isSlow)
      schedule.after(way) { [self] in
        let state = origin.state(of: id)
        schedule.after(Self.trip(of: schedule, back)) { [machine] in
          guard !machine.isDead else { return }
          loop?.execute {
            continuation.resume(
              returning: state.map {
                ProbeResponse(
                  status: $0.status, contentType: "application/json",
                  body: ByteBuffer(string: $0.body))
              })
          }
        }
      }
    }
  }
}
