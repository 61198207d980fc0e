import Calls
import Idempotency
import Logging
import Proxy
import Settings
import Store
import TLS
import Telemetry

extension ProxyLimits {
  init(_ settings: LimitSettings) {
    self.init()
    maxConnections = settings.maxConnections
    maxInFlight = settings.maxInFlight
    bodyMemory = settings.bodyMemory
    headerBytes = settings.headerBytes
    headerLine = settings.headerLine
    headerCount = settings.headerCount
    headerTimeout = settings.headerTimeout
    bodyTimeout = settings.bodyTimeout
    writeTimeout = settings.writeTimeout
    idleTimeout = settings.idleTimeout
    pipelineBytes = settings.pipelineBytes
    tunnelTimeout = settings.tunnelTimeout
    http2MaxStreams = settings.http2MaxStreams
    http2Window = settings.http2Window
    http2Resets = settings.http2Resets
    http2ControlFrames = settings.http2ControlFrames
  }
}

extension Listener {
  /// Creates a listener, and reads its certificate files.
  init(_ settings: ListenSettings) throws(TLSFault) {
    var certificate: ServerCertificate?
    if let files = settings.tls { certificate = try ServerCertificate(files) }
    let address: Address =
      switch settings.address {
      case .tcp(let host, let port): .tcp(host: host, port: port)
      case .unix(let path): .unix(path: path, mode: settings.mode)
      }
    self.init(address, certificate: certificate, proxyProtocol: settings.proxyProtocol)
  }
}

extension ProxyPatience {
  init(_ settings: Settings) {
    self.init(drainDelay: settings.drainDelay, grace: settings.shutdownGrace)
  }
}

extension Logger.Level {
  init(_ level: LogSettings.Level) {
    self =
      switch level {
      case .trace: .trace
      case .debug: .debug
      case .info: .info
      case .notice: .notice
      case .warning: .warning
      case .error: .error
      case .critical: .critical
      }
  }
}

extension LogFormat {
  init(_ format: LogSettings.Format) {
    switch format {
    case .json: self = .json
    case .text: self = .text
    }
  }
}

extension Tracer {
  /// Creates a tracer that sends spans to the collector by OTLP over HTTP, in JSON.
  convenience init(_ settings: TracingSettings) {
    self.init(sample: settings.sample) { body in
      var call = HTTPCall(url: settings.revealedURL + "/v1/traces")
      call.method = "POST"
      call.fields = ["Content-Type: application/json"]
      call.body = body
      // With a longer time-out, there would be no room for the spans that arrive meanwhile.
      call.timeoutMilliseconds = 5000
      guard let answer = try? call.send() else { return false }
      return (200..<300).contains(answer.status)
    }
  }
}

extension RedisEndpointSettings {
  init(_ redis: RedisSettings, in store: StoreSettings) {
    switch redis.endpoint {
    case .tcp(let host, let port): self.init(address: .tcp(host: host, port: port))
    case .unix(let path): self.init(address: .unix(path: path))
    }
    user = redis.user
    password = redis.password
    database = redis.database
    timeout = store.timeout
    namespace = store.namespace
    requireDurable = store.requireDurable
  }
}

extension LocalCache {
  /// Applies an event of the subscription.
  func follow(_ event: RedisHub.Event) {
    switch event {
    case .up: subscriptionUp()
    case .down: subscriptionDown()
    case .invalidated(let id): invalidate(id)
    }
  }
}
