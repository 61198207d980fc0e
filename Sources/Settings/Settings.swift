import Idempotency
import Wire

/// The treatment of request fields with an underscore in their names on the way to backends.
public enum Underscores: String, Sendable, CaseIterable { case drop, pass }

/// The whole configuration: one YAML file, read to one typed document.
public struct Settings: Sendable, Hashable {
  public enum Readiness: String, Sendable, CaseIterable {
    /// Ready from the first time on that the store has been reached and accepted.
    case started
    /// Ready while the store serves.
    case store
  }

  public var listen: [ListenSettings] = [.tcp(host: "127.0.0.1", port: 8080)]
  /// `nil`: there is no listener for operators.
  public var admin: AdminSettings?
  /// Event loops; 0: one for each core.
  public var workers = 0
  /// From not being ready to accepting no more.
  public var drainDelay: Milliseconds = 0
  /// For what is in flight when Semel stops.
  public var shutdownGrace: Milliseconds = .seconds(35)
  public var trustedProxies = TrustedProxies()
  public var unmatchedKeys: UnmatchedKeys = .pass
  public var underscores: Underscores = .drop
  public var upstreams: [String: UpstreamSettings] = [:]
  public var store = StoreSettings()
  public var limits = LimitSettings()
  public var log = LogSettings()
  /// `nil`: no spans are made.
  public var tracing: TracingSettings?
  /// In the order in which they are matched, each with `defaults` merged in.
  public var routes: [RoutePolicy] = []
  /// Whether a store that fails after it has served makes this process not ready.
  public var readiness: Readiness = .started
  /// Whether a reload may change by what a route's records are found.
  public var allowsIdentityChange = false
  /// What is allowed and yet probably not meant, in the order of the file.
  public var warnings: [SettingsIssue] = []

  /// The defaults; a file has to name at least one upstream.
  public init() {}

  /// Where a request goes that meets no route: the upstream, where there is only one.
  public var onlyUpstream: UpstreamSettings? { upstreams.count == 1 ? upstreams.first?.value : nil }

  /// Reads a file's text. `file` names it in messages; all that is wrong is told at once.
  public static func load(
    text: String, file: String, environment: [String: String]
  ) -> Result<Settings, SettingsErrors> {
    let document: Document
    do throws(Document.SyntaxError) {
      document = try Document(composing: text)
    } catch {
      let reader = Reader(file: file, environment: environment)
      reader.refuse("", at: error.position, error.message)
      return .failure(SettingsErrors(issues: reader.errors))
    }
    let reader = Reader(file: file, environment: environment, names: document.names)
    var settings = Settings()
    if let root = document.root {
      Value(reader: reader, node: root, path: "").section { settings.read($0) }
    } else {
      reader.refuse("", at: .start, "the file is empty: write at least upstreams and routes")
    }
    guard reader.errors.isEmpty else { return .failure(SettingsErrors(issues: reader.errors)) }
    settings.warnings = reader.warnings
    return .success(settings)
  }
}
