import Calls
import Idempotency
import Logging
import Proxy
import Settings
import Store
import TLS
import Telemetry
import Transport
import Wire

extension Listener {
  init(_ settings: ListenSettings) throws(TLSFault) {
    var certificate: ServerCertificate?
    if let files = settings.tls { certificate = try ServerCertificate(files) }
    self.init(
      settings.address, mode: settings.mode, certificate: certificate, proxyProtocol: settings.proxyProtocol)
  }
}

extension BackendTLS {
  func renew(logger: Logger) {
    for renewal in renew() {
      switch renewal {
      case .renewed(let files):
        logger.info("the TLS files of a backend were read again", metadata: files.metadata)
      case .failed(let files, let fault):
        logger.error(
          "the TLS files of a backend could not be read again; the ones before stay in use",
          metadata: files.metadata.merging(["error": "\(fault)"]) { _, new in new })
      }
    }
  }
}

extension ClientTLSFiles {
  fileprivate var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [:]
    if let ca { metadata["ca"] = "\(ca)" }
    if let certificate { metadata["certificate"] = "\(certificate)" }
    return metadata
  }
}

extension OutcomeCodec.Compression {
  init(_ compression: StoreSettings.Compression) {
    self =
      switch compression {
      case .auto: .unsealed
      case .always: .all
      case .off: .none
      }
  }
}

extension StopDurations {
  init(_ settings: Settings) {
    self.init(drainDelay: settings.drainDelay, grace: settings.shutdownGrace)
  }
}

extension Logger.Level {
  init(_ level: LogSettings.Level) { self = Self(rawValue: level.rawValue) ?? .info }
}

extension LogFormat {
  init(_ format: LogSettings.Format) { self = format == .json ? .json : .text }
}

extension Tracer {
  /// Creates a tracer that sends spans to the collector by OTLP over HTTP, in JSON.
  convenience init(_ settings: TracingSettings, logger: Logger) {
    self.init(sample: settings.sample, logger: logger) { body in
      var call = HTTPCall(url: settings.revealedURL + "/v1/traces")
      call.method = "POST"
      call.fields = ["Content-Type: application/json"]
      call.body = body
      // With a longer time-out, there would be no room for the spans that arrive meanwhile.
      call.timeoutMilliseconds = 5000
      do throws(HTTPCall.Failure) {
        let status = try call.send().status
        return 200..<300 ~= status ? nil : "it responded with status \(status)"
      } catch {
        return error.description
      }
    }
  }
}

extension RedisEndpointSettings {
  init(_ redis: RedisSettings, in store: StoreSettings) throws(TLSFault) {
    self.init(address: redis.endpoints[0])
    login = try RedisLogin(redis.login, in: "store")
    switch redis.topology {
    case .standalone: topology = .standalone
    case .sentinel(let nodes, let master):
      topology = .sentinel(
        nodes, master: master, login: try RedisLogin(redis.sentinelLogin, in: "store.sentinel"))
    case .cluster(let nodes): topology = .cluster(nodes)
    }
    database = redis.database
    timeout = store.timeout
    namespace = store.namespace
    requireDurable = store.requireDurable
    failoverGrace = redis.copies.failoverGrace
    demand = ReplicaDemand(replicas: redis.copies.replicas, isOnDisk: redis.copies.medium == .waitaof)
  }
}

extension RedisLogin {
  /// - Parameter member: The settings' path in the configuration.
  init(_ settings: RedisSettings.Login, in member: String) throws(TLSFault) {
    self.init()
    user = settings.user
    password = settings.password
    if let path = settings.passwordFile {
      readPassword = { () throws(RedisLogin.Fault) in
        do throws(SecretFile.Fault) {
          return try SecretFile.read(path)
        } catch {
          throw RedisLogin.Fault(reason: "the file \(path) of \(member).password_file \(error)")
        }
      }
    }
    if let files = settings.tls { tls = try ClientTLS(files) }
  }
}

extension LocalCache {
  func follow(_ event: RedisSubscriber.Event) {
    switch event {
    case .up: subscriptionUp()
    case .down: subscriptionDown()
    case .heard(let moment): heardInvalidations(from: moment)
    case .invalidated(let id): invalidate(id)
    }
  }
}
