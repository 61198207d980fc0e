import Idempotency
import Logging
import NIOCore
import NIOEmbedded
import Platform
import Telemetry
import Wire

@testable import Proxy

/// A worker on an embedded loop, whose store and backend a test scripts. No timer fires.
final class WorkerHarness {
  private let loop = EmbeddedEventLoop()
  let store: ScriptedStore
  let backend = ScriptedBackend()
  let environment: ProxyEnvironment
  let worker: Worker<ScriptedStore, ScriptedBackend>
  private let limits: LimitSettings
  let metrics: LoopMetrics
  private let all = Metrics(loops: 1)

  /// Creates a worker with one route.
  init(_ policy: RoutePolicy, probe: (any OutcomeProbe)? = nil) {
    let all = all
    var limits = LimitSettings()
    limits.bodyMemory = 1 << 20
    self.limits = limits
    metrics = all.loops[0]
    store = ScriptedStore(loop: loop)
    environment = ProxyEnvironment(counters: all.counters, probe: probe, logger: Logger(label: "test"))
    let configuration = ConfigurationSnapshot(
      routes: RouteTable([policy]) { all.number(ofRoute: $0) }, fallback: nil, limits: limits,
      accessLog: AccessLog(sink: LogSink(), format: .json, isEnabled: false),
      trustedProxies: TrustedProxies(), unmatchedKeys: .pass, passesUnderscores: false)
    worker = Worker(
      context: EventLoopContext(loop: loop), store: store, backend: backend, environment: environment,
      configuration: configuration, metrics: metrics)
  }

  /// Creates a worker with a route on which all clients are one caller.
  convenience init() {
    var policy = RoutePolicy(
      name: "orders", match: RouteMatch(),
      upstream: UpstreamSettings(name: "orders", address: .unix(path: "/none")))
    policy.caller = CallerPolicy(parts: [])
    self.init(policy)
  }

  /// A request with a body of JSON, which no runner has taken yet.
  func delivery(
    of body: String, method: String = "POST", target: String = "/v1/orders", key: String? = nil,
    to client: ScriptedClient = ScriptedClient()
  ) throws -> Delivery {
    var head = try MessageHead(method: method, target: target)
    try head.append(name: "Host", value: "orders.example")
    try head.append(name: "Content-Type", value: "application/json")
    if let key { try head.append(name: "Idempotency-Key", value: key) }
    let delivery = Delivery(
      request: RequestHead(
        head: head, framing: .length(body.utf8.count), keepAlive: true, expectsContinue: false),
      channel: client, memory: ConnectionMemory(on: worker.downstream),
      peer: ClientPeer(address: "192.0.2.1"), on: worker.downstream)
    delivery.received(ByteBuffer(string: body))
    delivery.bodyEnded()
    return delivery
  }

  /// Delivers a request, and runs all that follows from it.
  func deliver(
    _ body: String, method: String = "POST", target: String = "/v1/orders", key: String? = nil
  ) throws -> ScriptedClient {
    let client = ScriptedClient()
    try delivery(of: body, method: method, target: target, key: key, to: client).start(on: worker.downstream)
    run()
    return client
  }

  /// Runs what is ready, and all that follows from it.
  func run() { loop.run() }

  /// Renders the page of metrics. What uses the loop comes before, since the call may go on on another thread.
  func page() async -> String { await all.page() }

  /// Takes all the room for responses that requests may reserve.
  func exhaustCaptures() {
    let limit = MemoryLimits(limits).reserved
    while environment.bodyMemory.captured.add(MemoryLimits.reservation, upTo: limit) {}
  }
}

/// A client that takes its response as it comes.
final class ScriptedClient: DeliveryChannel {
  private(set) var response: ClientResponse?

  var status: Int? { response?.head.status }

  var text: String { response.map { String(buffer: $0.body) } ?? "" }

  /// The fields of the response, as lines.
  var fields: String {
    var lines = ByteBuffer()
    response?.head.writeFields(into: &lines)
    return String(buffer: lines)
  }

  var connection: ObjectIdentifier { ObjectIdentifier(self) }

  var isWritable: Bool { true }

  func admitNextPiece() {}
  func admitReplay(_ body: ByteBuffer, of record: CompletedRecord) -> Bool { true }

  func respond(with response: ClientResponse) -> Int {
    self.response = response
    return 0
  }

  func begin(_ head: ClientResponseHead, with piece: ByteBuffer) -> Int { 0 }
  func write(_ piece: ByteBuffer) -> Int { 0 }
  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int { 0 }
  func sendContinue() {}
  func interim(_ head: ClientResponseHead) {}
  func switchProtocols(_ head: MessageHead, label: ResponseLabel?) -> Int { 0 }
  func resumeBody() {}
  func abort() {}
}
