import Idempotency
import Proxy
import Settings
import Store
import Telemetry

extension ProxyLimits {
  init(_ settings: LimitSettings) {
    self.init()
    maxConnections = settings.maxConnections
    maxInFlight = settings.maxInFlight
    bodyMemory = settings.bodyMemory
    headerBytes = settings.headerBytes
    headerTimeout = settings.headerTimeout
    bodyTimeout = settings.bodyTimeout
    idleTimeout = settings.idleTimeout
  }
}

extension ProxyServer.Address {
  init(_ settings: ListenSettings) {
    switch settings {
    case .tcp(let host, let port): self = .tcp(host: host, port: port)
    case .unix(let path): self = .unix(path: path)
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

extension RedisEndpointSettings {
  init(_ redis: RedisSettings, in store: StoreSettings) {
    switch redis.endpoint {
    case .tcp(let host, let port): self.init(address: .tcp(host: host, port: port))
    case .unix(let path): self.init(address: .unix(path: path))
    }
    user = redis.user
    password = redis.password
    database = redis.database
    timeout = redis.timeout
    namespace = store.namespace
    requireDurable = store.requireDurable
  }
}

extension LocalCache {
  /// Does what the subscription says.
  func follow(_ event: RedisHub.Event) {
    switch event {
    case .up: subscriptionUp()
    case .down: subscriptionDown()
    case .invalidated(let id): invalidate(id)
    }
  }
}
