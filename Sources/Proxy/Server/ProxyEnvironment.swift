import Idempotency
import Logging
import Platform
import Synchronization
import Telemetry

/// The parts that all event loops of the proxy share for as long as it runs.
public final class ProxyEnvironment: Sendable {
  public let counters: Counters
  public let logger: Logger
  /// The export of spans; `nil` if none are made.
  public let tracer: Tracer?
  /// The key of the record ids; `nil` if they are plain digests.
  public let identityKey: IdentityKey?
  /// Whether the store seals responses with the clients' keys.
  public let sealsResponses: Bool
  public let digests: LogDigests
  /// The name of this process in records, among the nodes of its store.
  public let node: String
  /// The latest keyed requests for operators; `nil` where nobody can read them.
  public let journal: RequestJournal?
  let waiting = WaitingRoom()
  let bodyThreads: BodyThreads
  /// The connections that await a PROXY header.
  let proxyHeaders = HandshakeRoom()
  /// The connections that await the rest of a TLS handshake.
  let handshakes = HandshakeRoom()
  let unprotectedKeys = UnprotectedKeys()
  let unkeptResponses = RoutePace()
  let forbiddenStoring = NotedRoutes()
  let sightings = KeySightings()
  let misuse = MisuseSketch()
  let known: KnownRecords
  let unstored = UnstoredOutcomes()
  let takeOvers: TakeOverPause
  let mismatches: MismatchNotes
  let losses: LossLog
  let bodyMemory: BodyMemory
  let retries = RetryBudgets()
  let reconciler: Reconciler
  let quotas = CallerQuotas()
  private let draining = Atomic<Bool>(false)

  public init(
    counters: Counters, tracer: Tracer? = nil, identityKey: IdentityKey? = nil,
    sealsResponses: Bool = false, digests: LogDigests = LogDigests(), node: String = "",
    known: KnownRecords = KnownRecords(), takeOvers: TakeOverPause = TakeOverPause(),
    mismatches: MismatchNotes = MismatchNotes(), probe: (any OutcomeProbe)? = nil,
    journal: RequestJournal? = nil, losses: LossLog? = nil, logger: Logger,
    makePool: (Int) -> any WorkPool = { ThreadPool(threads: $0) }
  ) {
    bodyThreads = BodyThreads(makePool: makePool)
    self.counters = counters
    bodyMemory = BodyMemory(counters: counters)
    self.tracer = tracer
    self.identityKey = identityKey
    self.sealsResponses = sealsResponses
    self.digests = digests
    self.node = Attribution.nodeName(node)
    self.known = known
    self.takeOvers = takeOvers
    self.mismatches = mismatches
    self.losses = losses ?? LossLog(logger: logger)
    reconciler = Reconciler(probe)
    self.journal = journal
    self.logger = logger
  }

  /// Whether the proxy is shutting down: it finishes running requests and begins no others.
  public var isDraining: Bool { draining.load(ordering: .relaxed) }

  public func drain() { draining.store(true, ordering: .relaxed) }
}
