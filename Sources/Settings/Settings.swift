import Idempotency
import Wire

/// The treatment of request fields with an underscore in their names on the way to backends.
public enum Underscores: String, Sendable, CaseIterable { case drop, pass }

/// The publication of the policy at `/.well-known/idempotency`. With `off`, requests for it go by the routes.
public enum PolicyPublication: String, Sendable, CaseIterable { case on, off }

/// The whole configuration: one YAML file, read into one typed document.
public struct Settings: Sendable, Hashable {
  /// The condition for readiness.
  public enum Readiness: String, Sendable, CaseIterable {
    /// Ready from the first moment at which the store was reached and accepted.
    case started
    /// Ready while the store is available.
    case store
  }

  public var listen: [ListenSettings] = [.tcp(host: "127.0.0.1", port: 8080)]
  /// The listener for operators; `nil` for none.
  public var admin: AdminSettings?
  /// The number of event loops; 0 for one per core.
  public var workers = 0
  /// The time between the end of readiness and the end of accepting connections.
  public var drainDelay: Milliseconds = 0
  /// The maximum time for requests in progress when Semel stops.
  public var shutdownGrace: Milliseconds = .seconds(35)
  public var trustedProxies = TrustedProxies()
  public var unmatchedKeys: UnmatchedKeys = .pass
  public var underscores: Underscores = .drop
  public var upstreams: [String: UpstreamSettings] = [:]
  public var store = StoreSettings()
  public var limits = LimitSettings()
  public var log = LogSettings()
  /// The export of spans; `nil` for none.
  public var tracing: TracingSettings?
  /// The verification of tokens; `nil` if no caller is known by them.
  public var jwt: JWTSettings?
  /// The routes in the order of matching, each with `defaults` merged in.
  public var routes: [RoutePolicy] = []
  /// The condition under which this process reports that it is ready.
  public var readiness: Readiness = .started
  public var policyDocument: PolicyPublication = .on
  /// The URL of the page that describes the problem codes in words, without a fragment; `nil` for none.
  public var policyPage: String?
  /// The change of what identifies requests that a start or a reload may make; `nil` for none.
  public var acceptedChange: ConfigurationChange.Digest?
  /// The settings that are valid but probably a mistake, in the order of the file.
  public var warnings: [SettingsIssue] = []

  /// Creates the default settings. A file has to name at least one upstream.
  public init() {}

  /// The only upstream, which receives requests that match no route; `nil` if there are several.
  public var onlyUpstream: UpstreamSettings? { upstreams.count == 1 ? upstreams.first?.value : nil }

  /// Reads the text of a file, and reports all errors together.
  ///
  /// - Parameter isOffline: Whether no connection is made by the settings, so that what only connections need, such as
  ///   a password in `store.url`, may lack its variable.
  public static func load(
    text: String, file: String, environment: [String: String], isOffline: Bool = false
  ) -> Result<Settings, SettingsErrors> {
    var settings = Settings()
    let reader = Reader.read(text, file: file, environment: environment, isOffline: isOffline) { root in
      root.section { schema.read($0, into: &settings) }
    }
    guard reader.errors.isEmpty else { return .failure(SettingsErrors(issues: reader.errors)) }
    settings.warnings = reader.warnings
    return .success(settings)
  }
}

extension Settings {
  /// All settings as JSON for an operator. Of a secret, it reveals only that it is set.
  public var shownJSON: String { Self.schema.shown(self).json }
}

/// The contents and the format of the log.
public struct LogSettings: Hashable, Sendable {
  public enum Level: String, Sendable, CaseIterable {
    case trace, debug, info, notice, warning, error, critical
  }
  public enum Format: String, Sendable, CaseIterable { case json, text }

  public var level: Level = .info
  public var format: Format = .json
  /// Whether each request gets a log entry.
  public var access = true
  /// The number of replays for each one that is logged; 0 logs none.
  public var replaySample = 1

  public init() {}
}

extension LogSettings {
  static let schema = Schema(LogSettings()) {
    Member("level", \.level, .word, "the least severity that is logged")
    Member("format", \.format, .word, "the format of log entries").restart
    Member("access", \.access, .flag, "one log entry for each request, whatever `level` is")
    Member(
      "replay_sample", \.replaySample, .integer(0...1_000_000),
      "the number of replays of which one is logged; 0 logs none")
  }
}

/// An error or a warning about a configuration file, with its position.
public struct SettingsIssue: Hashable, Sendable {
  public var file: String
  /// The line, counted from 1.
  public var line: Int
  /// The column, counted from 1 in Unicode scalars.
  public var column: Int
  /// The path of the member, such as `routes[0].lease`; empty for the file itself.
  public var path: String
  /// The message, with the allowed values or a remedy. It quotes numbers alone, since a text may be a secret.
  public var message: String
}

extension SettingsIssue: CustomStringConvertible {
  /// The issue in one line, such as `config.yaml:14:9: routes[0].lease: must be at least 1s`.
  public var description: String {
    let place = "\(file):\(line):\(column): "
    return path.isEmpty ? place + message : place + path + ": " + message
  }
}

/// All errors in a configuration file, in the order of the file.
public struct SettingsErrors: Error, Hashable, CustomStringConvertible {
  public var issues: [SettingsIssue]

  /// One line for each issue.
  public var description: String { issues.map(\.description).joined(separator: "\n") }
}

/// The reason why a text is not valid for a member, as the end of a sentence that begins with the member's path.
struct Refusal: Error, Hashable {
  var message: String

  init(_ message: String) { self.message = message }
}

func require(_ isMet: Bool, _ refusal: @autoclosure () -> String) throws(Refusal) {
  if !isMet { throw Refusal(refusal()) }
}
